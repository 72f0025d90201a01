// Who may make which call: the one table of it.
#pragma once

#include <cstddef>
#include <string_view>

#include "rendezvous/identity/authority.h"

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

}  // namespace muster::rendezvous
