// The calls of stores' clients at a simulated daemon.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "rendezvous/core/daemon_core.h"
#include "test/rendezvous/cluster/network.h"
#include "test/rendezvous/cluster/world.h"
#include "test/rendezvous/simulation/sim_clock.h"

namespace muster::rendezvous {

// What the store's front does. Its owner carries out what follows from each call (Service::Follow).
class StoreDesk {
 public:
  StoreDesk(World world, const SimClock& clock, DaemonCore& core)
      : world_(world), clock_(clock), core_(core) {}

  void Serve(ConnectionId connection, const StoreRequest& request);
  void Cancel(ConnectionId connection, std::uint64_t number);
  // Nobody waits for answers there any more.
  void Closed(ConnectionId connection);
  void Tell(const StoreAnswer& answer);

 private:
  // A call to a store, and the key's value when it was answered.
  struct OpenCall {
    ConnectionId connection = 0;
    StoreRequest request;
    StoreReply reply;
    std::string value;
  };

  absl::Status Do(OpenCall& call, KeyValueStore& store);

  World world_;
  const SimClock& clock_;
  DaemonCore& core_;
  CallId last_call_ = 0;
  std::map<CallId, OpenCall> calls_;
  // Calls that were cancelled before they arrived.
  std::set<std::pair<ConnectionId, std::uint64_t>> cancelled_early_;
};

}  // namespace muster::rendezvous
