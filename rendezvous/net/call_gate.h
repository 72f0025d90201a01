// Counts calls, and refuses excess ones before gRPC spends memory on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "rendezvous/core/values/quotas.h"

struct grpc_server_credentials;

namespace grpc {
class ServerBuilder;
class ServerContextBase;
}  // namespace grpc

namespace muster::rendezvous {

// gRPC 1.51 limits only open streams. A call that is opened and reset is not an open stream, yet it
// costs 13 KB until its service has seen it, which does not happen while there is more to read: a
// client that sent 100,000 such calls, 10 MB, made a daemon take 1.6 GB, which it never returned.
// There is one earlier hook, called for each call as its headers are read: the processor of
// authentication metadata (gRPC's grpc_security.h). A call refused there costs nothing afterwards.
//
// A call is counted until its Pass is gone, and a cancelled one for a second more: cancelled calls
// end before gRPC has freed their memory, and a client that only opens and resets calls would
// otherwise never reach the limit (100,000 took 694 MiB, in one of six runs, depending on when gRPC
// frees them). Each admitted call is passed to the generic service of its server
// (fronts/rpc_router.h) exactly once, even if it was reset long before; a service of unary methods
// would not see a call without a message. A server with a gate must therefore have no other
// service. Nor may it watch the calls' deadlines (Configure): one that expires inside the gate
// would end a call that is counted but never reaches the service. Clients watch their own
// deadlines, and reset the call.
//
// Its methods may be called on any thread.
class CallGate : public std::enable_shared_from_this<CallGate> {
 public:
  // The tenant of a certificate, in PEM; empty where there is only one user. Called once per
  // connection.
  using TenantOf = std::function<std::string(absl::string_view certificate)>;

  // Called on a gRPC thread with a connection (ServerContext::peer) that exceeds its limit of calls
  // and keeps opening more: it should be closed. May repeat. Refusing a call takes 20 us, and while
  // gRPC refuses one connection's calls it may starve others for seconds: a thread serves each of
  // its connections until there is nothing more to read. A client that keeps to the limit of open
  // streams (limits::kStreams) never gets here.
  using OnFlood = std::function<void(const std::string& peer)>;

  explicit CallGate(const CallCounts::Limits& limits, OnFlood on_flood = nullptr)
      : on_flood_(std::move(on_flood)), counts_(limits) {}
  CallGate(const CallGate&) = delete;
  CallGate& operator=(const CallGate&) = delete;

  // Servers with these credentials use the gate from now on. `tenant_of` may be empty.
  void Guard(grpc_server_credentials* credentials, TenantOf tenant_of);

  // Required for the server with such credentials.
  static void Configure(grpc::ServerBuilder& builder);

  // Holds one call's place.
  class Pass {
   public:
    Pass() = default;
    Pass(Pass&& other) noexcept { *this = std::move(other); }
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_);
      std::swap(connection_, other.connection_);
      std::swap(tenant_, other.tenant_);
      std::swap(counted_, other.counted_);
      return *this;
    }
    ~Pass() { Release(); }

    // Stops counting the call here; it is counted elsewhere from now on.
    void Release();
    // Counts the call here again, if the limits allow.
    bool Resume();
    // The client cancelled the call and it is over: counts it for limits::kCancelledSeconds more.
    void Linger();
    // The tenant from TenantOf; empty for a call that did not come through the gate.
    const std::string& tenant() const { return tenant_; }
    // Calls refused on the same connection since the last call of this.
    std::uint64_t TakeRefused() const;

   private:
    friend class CallGate;

    std::shared_ptr<CallGate> gate_;  // null: not through the gate
    CallCounts::Connection connection_ = 0;
    std::string tenant_;
    bool counted_ = false;
  };

  // The Pass of a call that its service has received; call once per call. Empty for a call that did
  // not come through the gate.
  Pass PassOf(const grpc::ServerContextBase& call);

  // Calls passed to services since the last call of this, by peer (ServerContext::peer). Counting
  // begins with the first call of this.
  std::map<std::string, std::uint64_t> TakeShown();

  std::size_t under_way();
  // Since the start.
  std::uint64_t refused() const;
  CallCounts::Refused refused_by_limit() const;

 private:
  struct Guarded;

  // False: the call is refused.
  bool Begin(CallCounts::Connection connection, const std::string& tenant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const OnFlood on_flood_;
  mutable absl::Mutex mutex_;
  CallCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::map<std::string, std::uint64_t>> shown_ ABSL_GUARDED_BY(mutex_);
  CallCounts::Connection next_connection_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace muster::rendezvous
