// Where calls are counted and refused before gRPC makes anything of them.
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
#include "rendezvous/core/call_counts.h"

struct grpc_server_credentials;

namespace grpc {
class ServerBuilder;
class ServerContextBase;
}  // namespace grpc

namespace muster::rendezvous {

// gRPC 1.51 knows a limit of open streams alone. A call that is opened and reset is no open stream,
// and yet costs 13 KB until it has been shown to whoever serves it. That is not done while there is
// something to read: a client that sent 100,000 such calls, 10 MB, took 1.6 GB of a daemon, which
// never gave them back. There is one place where gRPC asks before that, call by call as it reads
// their headers: the processor of authentication metadata (grpc_security.h). What is refused there
// costs nothing afterwards.
//
// A call is counted until its Pass is gone. One that its client cancelled is counted for a second
// more: such calls end before gRPC has let go of what they took, and a client that opened and reset
// them for a living would otherwise never have many under way (100,000 took 694 MiB, once in six
// times; what counts is when gRPC comes to it). Each call that is let in is shown to the generic
// service of its server (fronts/call_entrance.h) exactly once, also if it was reset long before;
// that would not be so with a service of unary methods, which gRPC does not show a call without a
// message. A server with a gate must therefore have no other service. Nor may it watch the calls'
// deadlines (Configure): one that passes while the gate is being asked would end a call that has
// been counted and will not be shown. Clients watch their own, and reset the call.
//
// Its methods may be called on any thread.
class CallGate : public std::enable_shared_from_this<CallGate> {
 public:
  // Whose a certificate is, in PEM; empty where there is only one user. Asked once a connection.
  using TenantOf = std::function<std::string(absl::string_view certificate)>;

  // Told, on a thread of gRPC's, whose connection has more calls under way than it may and goes on
  // nonetheless: it should be ended (ServerContext::peer; may be said more than once). To refuse a
  // call takes 20 us, and while gRPC has one connection's calls to refuse it may leave others
  // alone, for seconds: it serves connections whose turn came in one thread one after another, each
  // until there is nothing more of it to read. A client that keeps to the limit of open streams
  // (limits::kStreams) does not come so far.
  using OnFlood = std::function<void(const std::string& peer)>;

  explicit CallGate(const CallCounts::Limits& limits, OnFlood on_flood = nullptr)
      : on_flood_(std::move(on_flood)), counts_(limits) {}
  CallGate(const CallGate&) = delete;
  CallGate& operator=(const CallGate&) = delete;

  // From now on servers with these credentials ask here. `tenant_of` may be empty.
  void Guard(grpc_server_credentials* credentials, TenantOf tenant_of);

  // To be done with the server of such credentials.
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

    // The call is counted elsewhere from now on.
    void Release();
    // It no longer is, and counts here again, if there is room for one more.
    bool Resume();
    // The client cancelled the call, which is over: it counts for limits::kCancelledSeconds more.
    void Linger();
    // Whose the call is, as TenantOf says; empty for a call that came by another way.
    const std::string& tenant() const { return tenant_; }
    // Calls that were refused over the same connection since somebody asked last.
    std::uint64_t TakeRefused() const;

   private:
    friend class CallGate;

    std::shared_ptr<CallGate> gate_;  // null: the call came by another way
    CallCounts::Connection connection_ = 0;
    std::string tenant_;
    bool counted_ = false;
  };

  // Of a call that is shown to its service; to be asked for once. Holds nothing for a call that
  // came by another way.
  Pass PassOf(const grpc::ServerContextBase& call);

  // Calls that were shown since this was asked last, by where they come from
  // (ServerContext::peer). They are counted from when it is first asked.
  std::map<std::string, std::uint64_t> TakeShown();

  std::size_t under_way();
  // Since the beginning.
  std::uint64_t refused() const;
  CallCounts::Refused refused_by_limit() const;

 private:
  struct Guarded;

  // False: it is refused.
  bool Begin(CallCounts::Connection connection, const std::string& tenant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const OnFlood on_flood_;
  mutable absl::Mutex mutex_;
  CallCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::map<std::string, std::uint64_t>> shown_ ABSL_GUARDED_BY(mutex_);
  CallCounts::Connection next_connection_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace muster::rendezvous
