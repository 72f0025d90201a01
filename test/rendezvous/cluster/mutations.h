// The mistakes that simulated agents can make.
#pragma once

namespace muster::rendezvous {

// Mistakes of the agent, its client and its guard, each made on purpose in a mutant.
struct AgentMutations {
  bool does_not_fence = false;                 // nor does its guard
  bool counts_lease_from_answer = false;       // not from when what was answered was sent
  bool names_rounds_of_other_lives = false;    // in the first Join of an attendance
  bool reports_what_the_guard_killed = false;  // as failures of its workers
  bool guard_tells_too_early = false;          // that workers are dead which still run
  bool starts_when_its_lease_is_over = false;  // when told late, and leaves it to its guard
};

}  // namespace muster::rendezvous
