// Deliberate mistakes of simulated agents.
#pragma once

namespace muster::rendezvous {

// Deliberate mistakes of the agent and its guard, one per mutant.
struct AgentMutations {
  bool does_not_fence = false;                 // and neither does its guard
  bool reports_what_the_guard_killed = false;  // as failures of its workers
  bool guard_tells_too_early = false;          // that workers are dead while they still run
};

}  // namespace muster::rendezvous
