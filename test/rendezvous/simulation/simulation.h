// The Coordinator among sixteen agents on a network and a clock that go wrong, from one seed.
//
// A run hands the real Coordinator a number of events, each a call of it: what agents send, streams
// that end, ticks. The agents (simulated_agent.h) come, work, fail and go by chance; their messages
// take their time in both directions, in order for each agent; some agents are cut off for longer
// than their lease; the clock stands still now and then, and ticks come late. Several jobs with
// different settings share the agents. Invariants (invariants.h) are asserted at every event.
//
// Then nothing goes wrong any more, nobody comes, and every job has to reach its verdict, every
// agent has to leave and the Coordinator to forget all jobs in bounded time. At last it is drained,
// and must turn away whoever comes.
//
// Every choice is drawn from the seed: the same seed is the same run, event by event.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "test/rendezvous/simulation/coverage.h"

namespace muster::rendezvous {

struct SimulationOptions {
  std::uint64_t seed = 1;
  // How many events happen before the end begins.
  std::int64_t events = 100'000;
  // Gets every line of the trace when set.
  std::ostream* trace = nullptr;
};

struct SimulationResult {
  // Empty when all went well. Else which invariant was broken, when and how, with the seed and the
  // last lines of the trace; the run ended there.
  std::string failure;
  // Of the trace: one line for each event, directive, transition and forgotten job.
  std::uint64_t trace_hash = 0;
  std::int64_t events = 0;
  Coverage coverage;
};

SimulationResult Simulate(const SimulationOptions& options);

}  // namespace muster::rendezvous
