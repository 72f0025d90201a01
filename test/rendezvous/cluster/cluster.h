// Simulates a whole cluster in one process, from one seed: the real Coordinator, CommitGate,
// records, AgentSession and AgentPolicy, on sixteen simulated hosts and the daemon's, with faults
// in network, disk, clocks and processes. Instead of one daemon with a disk there may be two or
// three that take turns over a simulated etcd, with the real Candidate, Election and journal.
//
// First there is chaos: about every five seconds something fails (chaos.h), while workers run, fail
// and finish, and clients use the jobs' stores. Then all faults are healed, and within a given time
// every job must run with all available nodes or have ended. Finally all workers succeed, and
// everything must end.
//
// Violations (violations.h) are checked at every event, at the true time and on all hosts. Every
// choice is drawn from the seed: the same seed gives the same run.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "rendezvous/core/values/types.h"
#include "test/rendezvous/cluster/checks/incidents.h"
#include "test/rendezvous/cluster/mutations.h"
#include "test/rendezvous/cluster/service.h"

namespace muster::rendezvous {

struct ClusterOptions {
  std::uint64_t seed = 1;
  // 1: one with a disk; 2 or 3: so many, with an etcd.
  int daemons = 1;
  Duration chaos = std::chrono::hours(1);
  DaemonMutations daemon_mutations;
  AgentMutations agent_mutations;
  // Receives every line of the trace, if set.
  std::ostream* trace = nullptr;
};

struct ClusterResult {
  // Empty if all went well; otherwise the name (kCheckNames) of the first check that failed.
  std::string check;
  // The violation, with the seed and the last lines of the trace.
  std::string failure;
  std::uint64_t trace_hash = 0;
  Duration simulated{};
  std::uint64_t tasks = 0;  // the number of tasks run
  Incidents incidents;
};

ClusterResult SimulateCluster(const ClusterOptions& options);

}  // namespace muster::rendezvous
