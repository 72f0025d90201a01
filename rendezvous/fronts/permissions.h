// Who may make which call: the one table of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

#include "rendezvous/identity/authority.h"
#include "rendezvous/identity/keyring.h"
#include "rendezvous/net/credentials.h"

namespace grpc {
class CallbackServerContext;
}  // namespace grpc

namespace muster::rendezvous {

// Every call of every service.
enum class Rpc {
  kAttend,
  kDescribe,
  kList,
  kWatch,
  kReadLog,
  kDeliverLog,
  kStoreGet,
  kStoreSet,
  kStoreAdd,
  kStoreCompareSet,
  kStoreAppend,
  kStoreDelete,
  kStoreCheck,
  kStoreWait,
  kStoreBarrier,
  kStoreNumKeys,
  kStoreMultiGet,
  kStoreMultiSet,
  kTunnelCarry,
};

struct Permission {
  Rpc rpc;
  // As gRPC names it: "muster.store.v1.Store/Get".
  std::string_view method;
  bool agent = false;
  bool tool = false;
  bool metrics = false;
};

// clang-format off
inline constexpr Permission kPermissions[] = {
    //                                                                    agent  tool   metrics
    {Rpc::kAttend,          "muster.rendezvous.v1.Rendezvous/Attend",     true,  false, false},
    {Rpc::kDescribe,        "muster.rendezvous.v1.Rendezvous/Describe",   true,  true,  true},
    {Rpc::kList,            "muster.rendezvous.v1.Rendezvous/List",       true,  true,  true},
    {Rpc::kWatch,           "muster.rendezvous.v1.Rendezvous/Watch",      true,  true,  true},
    // What workers print may hold their secrets, so it is not for who only looks.
    {Rpc::kReadLog,         "muster.rendezvous.v1.Rendezvous/ReadLog",    false, true,  false},
    {Rpc::kDeliverLog,      "muster.rendezvous.v1.Rendezvous/DeliverLog", true,  false, false},
    {Rpc::kStoreGet,        "muster.store.v1.Store/Get",                  true,  true,  false},
    {Rpc::kStoreSet,        "muster.store.v1.Store/Set",                  true,  true,  false},
    {Rpc::kStoreAdd,        "muster.store.v1.Store/Add",                  true,  true,  false},
    {Rpc::kStoreCompareSet, "muster.store.v1.Store/CompareSet",           true,  true,  false},
    {Rpc::kStoreAppend,     "muster.store.v1.Store/Append",               true,  true,  false},
    {Rpc::kStoreDelete,     "muster.store.v1.Store/Delete",               true,  true,  false},
    {Rpc::kStoreCheck,      "muster.store.v1.Store/Check",                true,  true,  false},
    {Rpc::kStoreWait,       "muster.store.v1.Store/Wait",                 true,  true,  false},
    {Rpc::kStoreBarrier,    "muster.store.v1.Store/Barrier",              true,  true,  false},
    {Rpc::kStoreNumKeys,    "muster.store.v1.Store/NumKeys",              true,  true,  false},
    {Rpc::kStoreMultiGet,   "muster.store.v1.Store/MultiGet",             true,  true,  false},
    {Rpc::kStoreMultiSet,   "muster.store.v1.Store/MultiSet",             true,  true,  false},
    {Rpc::kTunnelCarry,     "muster.tunnel.v1.Tunnel/Carry",              true,  false, false},
};
// clang-format on

// A call without a line in the table does not compile where it is asked about.
constexpr const Permission& PermissionFor(Rpc rpc) {
  return kPermissions[static_cast<std::size_t>(rpc)];
}
constexpr bool TableIsInOrder() {
  std::size_t place = 0;
  for (const Permission& line : kPermissions) {
    if (static_cast<std::size_t>(line.rpc) != place++) return false;
  }
  return place == static_cast<std::size_t>(Rpc::kTunnelCarry) + 1;
}
static_assert(TableIsInOrder());

constexpr bool IsAllowed(Role role, Rpc rpc) {
  const Permission& line = PermissionFor(rpc);
  switch (role) {
    case Role::kAgent:
      return line.agent;
    case Role::kTool:
      return line.tool;
    case Role::kMetrics:
      return line.metrics;
    case Role::kDaemon:
      return false;  // it calls nobody
  }
  return false;
}

// A log of refusals that nobody can flood.

// One line for each address and minute; what else comes from there is counted, and told with its
// next line. Of more than 1024 addresses at a time those that come last share one. Not thread-safe.
class RateLimitedLog {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Log = std::function<void(const std::string& line)>;

  explicit RateLimitedLog(Log log) : log_(std::move(log)) {}

  // Somebody at `address` was refused; `what` is said of it, "has no right to ...".
  void Add(const std::string& address, const std::string& what, TimePoint now);

  // Refusals since the beginning.
  std::uint64_t total() const { return total_; }

 private:
  struct Line {
    TimePoint said;
    std::uint64_t unsaid = 0;
  };

  const Log log_;
  std::map<std::string, Line> lines_;
  TimePoint swept_{};  // when those of minutes ago were forgotten
  std::uint64_t total_ = 0;
};

// Identifies each caller by the certificate of its connection, and allows it what its role may do.

// Lives on the loop's thread.
class Authenticator {
 public:
  explicit Authenticator(Credentials credentials);

  // A connection from that address ended before its first call: most likely as its other end has
  // not proven anything.
  void TurnedAway(const std::string& address);

  // Calls from that address were refused at the gate (net/call_gate.h).
  void TooManyCalls(const std::string& address, std::uint64_t refused);

  // A connection from that address was ended for calls that gRPC refused by itself.
  void HiddenCalls(const std::string& address, std::uint64_t calls);

  // Whose jobs the call may touch (Key::tenant); PermissionDenied, one sentence, when none. Where
  // callers do not prove a token, whoever is let in may do anything. While the call is open.
  absl::StatusOr<std::string> Admit(Rpc rpc, const grpc::CallbackServerContext& call);

  // The same for a call that was admitted before, once the file of its caller's token has been
  // looked at again. May wait for a disk.
  absl::StatusOr<std::string> AdmitAgain(Rpc rpc, const grpc::CallbackServerContext& call);

  // Whose call it is; empty where there is one user, or if it is nobody's. While the call is open.
  std::string TenantOf(const grpc::CallbackServerContext& call);

  // A call was refused for another reason: "asks for a round that is over".
  void Complain(const grpc::CallbackServerContext& call, const std::string& what);

  // Calls refused since the beginning.
  std::uint64_t refused() const { return rate_limited_log_.total(); }

 private:
  // Null: nobody whose token counts now.
  const Principal* Identify(const std::string& certificate);
  void Refused(const std::string& address, const std::string& what) {
    rate_limited_log_.Add(address, what, std::chrono::steady_clock::now());
  }

  const Credentials credentials_;
  // Who has which certificate, by its hash, as found with `keys_`: checking a signature takes 0.1
  // ms. When `known_` is full it becomes `known_before_`, so that those who go on calling are kept.
  using Known = absl::flat_hash_map<std::string, Principal>;
  Keys keys_;
  Known known_, known_before_;
  RateLimitedLog rate_limited_log_;
};

}  // namespace muster::rendezvous
