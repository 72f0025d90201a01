#include "rendezvous/fronts/door_keeper.h"

#include <optional>
#include <utility>
#include <vector>

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>
#include <spdlog/spdlog.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/wire/peer.h"

namespace muster::rendezvous {
namespace {

// Certificates that are remembered: all are forgotten when there are more.
constexpr std::size_t kMostKnown = 16'384;

std::string CertificateOf(const grpc::CallbackServerContext& call) {
  const std::vector<grpc::string_ref> values =
      call.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return values.empty() ? "" : std::string(values[0].data(), values[0].size());
}

std::string Called(Role role) {
  return role == Role::kAgent ? "an agent" : absl::StrCat("one of the role ", NameOf(role));
}

}  // namespace

DoorKeeper::DoorKeeper(Credentials credentials)
    : credentials_(std::move(credentials)),
      complaints_([](const std::string& line) { spdlog::warn("{}", line); }) {}

absl::StatusOr<std::string> DoorKeeper::Admit(Rpc rpc, const grpc::CallbackServerContext& call) {
  // Where callers have certificates of a site's, whoever has one has all rights.
  if (credentials_.proof() != Credentials::Proof::kToken) return "";
  const Principal* const caller = Identify(CertificateOf(call));
  if (caller != nullptr && IsAllowed(caller->role, rpc)) return caller->tenant;
  const std::string why = caller == nullptr
                              ? "has a token that no longer counts"
                              : absl::StrCat("is ", Called(caller->role), " and may not call ",
                                             std::string(PermissionFor(rpc).method));
  Complain(call, why);
  return absl::PermissionDeniedError(absl::StrCat("this client ", why));
}

std::string DoorKeeper::TenantOf(const grpc::CallbackServerContext& call) {
  if (credentials_.proof() != Credentials::Proof::kToken) return "";
  const Principal* const caller = Identify(CertificateOf(call));
  return caller == nullptr ? "" : caller->tenant;
}

void DoorKeeper::Complain(const grpc::CallbackServerContext& call, const std::string& what) {
  complaints_.Add(ParsePeer(call.peer()).address, what, std::chrono::steady_clock::now());
}

void DoorKeeper::TurnedAway(const std::string& address) {
  if (!credentials_.secure()) return;
  const bool site = credentials_.proof() == Credentials::Proof::kSite;
  complaints_.Add(address,
                  site
                      ? "has begun TLS and has not come to a call: its certificate may be missing, "
                        "have expired, or be of another authority"
                      : "has begun TLS and has not come to a call: it may have another token, or "
                        "none",
                  std::chrono::steady_clock::now());
}

void DoorKeeper::TooManyCalls(const std::string& address, std::uint64_t refused) {
  complaints_.Add(address,
                  absl::StrCat("has too many calls under way, of which ", refused, " were refused"),
                  std::chrono::steady_clock::now());
}

void DoorKeeper::HiddenCalls(const std::string& address, std::uint64_t calls) {
  complaints_.Add(address,
                  absl::StrCat("has made ", calls,
                               " calls that gRPC refuses (without a method, say), and its "
                               "connection was ended"),
                  std::chrono::steady_clock::now());
}

const Principal* DoorKeeper::Identify(const std::string& certificate) {
  Keys keys = credentials_.keys();
  if (keys != keys_ || known_.size() >= kMostKnown) known_.clear();
  keys_ = std::move(keys);
  const auto found = known_.find(certificate);
  if (found != known_.end()) return &found->second;
  std::optional<Principal> principal = Keyring::Identify(*keys_, certificate);
  if (!principal) return nullptr;
  return &known_.emplace(certificate, *std::move(principal)).first->second;
}

}  // namespace muster::rendezvous
