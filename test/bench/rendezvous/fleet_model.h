// A daemon, its agents and perhaps aggregators between them, in simulated time: what more nodes
// cost than one machine can hold processes for.
#pragma once

#include "rendezvous/core/values/types.h"

namespace muster::rendezvous::bench {

// The decisions are those of the Coordinator itself, and take as long as it takes to make them
// here. What gRPC and TLS cost is given, as it was measured (docs/standby.md). The daemon has one
// processor, and so has each aggregator; what waits for one is served in order of arrival. Agents
// cost nothing.
struct FleetModel {
  int agents = 10'000;
  // Agents behind one aggregator; 0: there is none, and each agent has a connection to the daemon.
  int rack = 0;

  // For one connection with TLS, at the end that accepts it.
  Duration handshake = std::chrono::microseconds(3500);
  // To read or to write one message.
  Duration message = std::chrono::microseconds(40);
  // For each further event or directive in a message of an aggregator.
  Duration item = std::chrono::microseconds(1);
  // From one machine to the next.
  Duration latency = std::chrono::microseconds(200);
  // So long an aggregator waits for more, to merge it; beats wait for a second.
  Duration merge = std::chrono::milliseconds(5);
};

struct FleetFigures {
  // From when all set out until all but one attend.
  Duration gathering{};
  // From the last one's first word until all have their Assignment.
  Duration last_join{};
  // From the failure of one worker until all have their Assignment again.
  Duration restart{};
  // Of the daemon's processor while everybody only beats once a second.
  double peace_share = 0;
  // Of the busiest aggregator's; 0 without one.
  double aggregator_peace_share = 0;
  // The longest time that the daemon heard nobody for one decision.
  Duration longest_turn{};
  // How many agents were told to start in the first round, and in the second.
  int started = 0;
  int started_again = 0;
};

FleetFigures Simulate(const FleetModel& model);

}  // namespace muster::rendezvous::bench
