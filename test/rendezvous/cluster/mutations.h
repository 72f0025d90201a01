// The mistakes that simulated agents can make.
#pragma once

namespace muster::rendezvous {

// Mistakes of the agent and its guard, each made on purpose in a mutant.
struct AgentMutations {
  bool does_not_fence = false;                 // nor does its guard
  bool reports_what_the_guard_killed = false;  // as failures of its workers
  bool guard_tells_too_early = false;          // that workers are dead which still run
};

}  // namespace muster::rendezvous
