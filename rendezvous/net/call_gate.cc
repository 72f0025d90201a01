#include "rendezvous/net/call_gate.h"

#include <chrono>
#include <cstring>
#include <vector>

#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>
#include <grpc/slice.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>

#include "rendezvous/core/values/limits.h"

namespace muster::rendezvous {
namespace {

// Properties that we add to a connection's context at its first call.
constexpr char kConnection[] = "muster_connection";
constexpr char kTenant[] = "muster_tenant";

std::optional<absl::string_view> Find(const grpc_auth_context* context, const char* name) {
  grpc_auth_property_iterator found = grpc_auth_context_find_properties_by_name(context, name);
  const grpc_auth_property* const property = grpc_auth_property_iterator_next(&found);
  if (property == nullptr) return std::nullopt;
  return absl::string_view(property->value, property->value_length);
}

CallCounts::Connection ToConnection(absl::string_view bytes) {
  CallCounts::Connection connection = 0;
  if (bytes.size() == sizeof connection) std::memcpy(&connection, bytes.data(), sizeof connection);
  return connection;
}

bool Is(const grpc_slice& slice, absl::string_view text) {
  return absl::string_view(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
                           GRPC_SLICE_LENGTH(slice)) == text;
}

// Without them gRPC drops the call later, and no service sees it.
bool HasPathAndAuthority(const grpc_metadata* metadata, std::size_t count) {
  bool path = false, authority = false;
  for (std::size_t i = 0; i < count; ++i) {
    path = path || Is(metadata[i].key, ":path");
    authority = authority || Is(metadata[i].key, ":authority");
  }
  return path && authority;
}

}  // namespace

// What gRPC holds for guarded credentials.
struct CallGate::Guarded {
  std::shared_ptr<CallGate> gate;
  TenantOf tenant_of;

  // Writes to the context only at a connection's first call, before any service could read it;
  // calls of one connection may be here on several threads.
  bool Begin(grpc_auth_context* context) const {
    const absl::MutexLock lock(&gate->mutex_);
    std::optional<absl::string_view> connection = Find(context, kConnection);
    if (!connection) {
      const CallCounts::Connection next = gate->next_connection_++;
      grpc_auth_context_add_property(context, kConnection, reinterpret_cast<const char*>(&next),
                                     sizeof next);
      const std::string tenant =
          tenant_of ? tenant_of(Find(context, GRPC_X509_PEM_CERT_PROPERTY_NAME).value_or("")) : "";
      grpc_auth_context_add_property(context, kTenant, tenant.data(), tenant.size());
      connection = Find(context, kConnection);
    }
    return gate->Begin(ToConnection(*connection), std::string(Find(context, kTenant).value_or("")));
  }
};

void CallGate::Guard(grpc_server_credentials* credentials, TenantOf tenant_of) {
  const auto process = [](void* self, grpc_auth_context* context, const grpc_metadata* metadata,
                          std::size_t count, grpc_process_auth_metadata_done_cb done, void* call) {
    if (!HasPathAndAuthority(metadata, count)) {
      return done(call, nullptr, 0, nullptr, 0, GRPC_STATUS_INVALID_ARGUMENT,
                  "the call has no :path or no :authority");
    }
    const bool begun = static_cast<const Guarded*>(self)->Begin(context);
    done(call, nullptr, 0, nullptr, 0, begun ? GRPC_STATUS_OK : GRPC_STATUS_RESOURCE_EXHAUSTED,
         begun ? nullptr : "too many calls are under way");
  };
  grpc_server_credentials_set_auth_metadata_processor(
      credentials, {process, [](void* self) { delete static_cast<Guarded*>(self); },
                    new Guarded{shared_from_this(), std::move(tenant_of)}});
}

bool CallGate::Begin(CallCounts::Connection connection, const std::string& tenant) {
  switch (counts_.Begin(connection, tenant, std::chrono::steady_clock::now())) {
    case CallCounts::Verdict::kBegun:
      return true;
    case CallCounts::Verdict::kFlood:
      // If no service has seen any of its calls yet, this is reported when one does.
      if (const std::string peer = counts_.PeerOf(connection); !peer.empty() && on_flood_) {
        on_flood_(peer);
      }
      return false;
    case CallCounts::Verdict::kRefused:
      return false;
  }
  return false;
}

void CallGate::Configure(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0);
}

CallGate::Pass CallGate::PassOf(const grpc::ServerContextBase& call) {
  Pass pass;
  const std::vector<grpc::string_ref> found = call.auth_context()->FindPropertyValues(kConnection);
  if (found.empty()) return pass;
  pass.gate_ = shared_from_this();
  pass.connection_ = ToConnection({found[0].data(), found[0].size()});
  for (const grpc::string_ref& tenant : call.auth_context()->FindPropertyValues(kTenant)) {
    pass.tenant_.assign(tenant.data(), tenant.size());
  }
  pass.counted_ = true;
  const std::string peer = call.peer();
  const absl::MutexLock lock(&mutex_);
  if (shown_) ++(*shown_)[peer];
  if (counts_.ComesFrom(pass.connection_, peer) && on_flood_) on_flood_(peer);
  return pass;
}

void CallGate::Pass::Release() {
  if (!std::exchange(counted_, false)) return;
  const absl::MutexLock lock(&gate_->mutex_);
  gate_->counts_.End(connection_);
}

bool CallGate::Pass::Resume() {
  if (gate_ == nullptr || counted_) return true;
  const absl::MutexLock lock(&gate_->mutex_);
  counted_ = gate_->Begin(connection_, tenant_);
  return counted_;
}

void CallGate::Pass::Linger() {
  if (!std::exchange(counted_, false)) return;
  const absl::MutexLock lock(&gate_->mutex_);
  gate_->counts_.EndAt(connection_, std::chrono::steady_clock::now() +
                                        std::chrono::seconds(limits::kCancelledSeconds.most));
}

std::uint64_t CallGate::Pass::TakeRefused() const {
  if (gate_ == nullptr) return 0;
  const absl::MutexLock lock(&gate_->mutex_);
  return gate_->counts_.TakeRefused(connection_);
}

std::map<std::string, std::uint64_t> CallGate::TakeShown() {
  std::map<std::string, std::uint64_t> shown;
  const absl::MutexLock lock(&mutex_);
  if (shown_) shown.swap(*shown_);
  shown_.emplace();
  return shown;
}

std::size_t CallGate::under_way() {
  const absl::MutexLock lock(&mutex_);
  counts_.Settle(std::chrono::steady_clock::now());
  return counts_.under_way();
}

std::uint64_t CallGate::refused() const {
  const absl::MutexLock lock(&mutex_);
  return counts_.refused();
}

CallCounts::Refused CallGate::refused_by_limit() const {
  const absl::MutexLock lock(&mutex_);
  return counts_.refused_by_limit();
}

}  // namespace muster::rendezvous
