// Simulates, from one seed, the Coordinator and sixteen agents with an unreliable network and
// clock.
//
// A run passes events to the real Coordinator, each one a call: messages from agents, ends of
// streams, ticks. The agents (simulated_agent.h) come, work, fail and go at random. Their messages
// are delayed in both directions, but stay in order for each agent. Some agents are cut off for
// longer than their lease, the clock stops now and then, and ticks come late. Several jobs with
// different settings share the agents. The invariants (invariants.h) are checked at every event.
//
// Then the faults end and no agent comes any more. Within a bounded time, every job has to reach
// its verdict, every agent has to leave, and the Coordinator has to forget all jobs. Finally it is
// drained, and must refuse every join.
//
// Every choice is drawn from the seed: the same seed gives the same run, event by event.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "test/rendezvous/simulation/coverage.h"

namespace muster::rendezvous {

struct SimulationOptions {
  std::uint64_t seed = 1;
  // The number of events before the final phase.
  std::int64_t events = 100'000;
  // Receives every line of the trace, if set.
  std::ostream* trace = nullptr;
};

struct SimulationResult {
  // Empty if all went well. Otherwise which invariant was violated, when and how, with the seed and
  // the last lines of the trace; the run ended there.
  std::string failure;
  // The hash of the trace, which has one line for each event, directive, transition and forgotten
  // job.
  std::uint64_t trace_hash = 0;
  std::int64_t events = 0;
  Coverage coverage;
};

SimulationResult Simulate(const SimulationOptions& options);

}  // namespace muster::rendezvous
