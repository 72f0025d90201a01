// A whole cluster in one process, from one seed: the real Coordinator, CommitGate, records,
// Attendance and AgentPolicy on sixteen simulated hosts and one of the daemon's, whose network,
// disk, clocks and processes go wrong.
//
// First there is chaos: about every five seconds something fails (chaos.h), while workers work,
// fail and finish, and clients use the jobs' stores. Then everything is healed, and within a stated
// time every job has to run with all that are there, or to have ended. At last all workers succeed,
// and everything has to come to its end.
//
// What must never happen is checked at every event, at the true time and on all hosts
// (violations.h). Every choice is drawn from the seed: the same seed is the same run.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "rendezvous/core/types.h"
#include "test/rendezvous/cluster/checks/incidents.h"
#include "test/rendezvous/cluster/daemon.h"
#include "test/rendezvous/cluster/mutations.h"

namespace muster::rendezvous {

struct ClusterOptions {
  std::uint64_t seed = 1;
  Duration chaos = std::chrono::hours(1);
  DaemonMutations daemon_mutations;
  AgentMutations agent_mutations;
  // Gets every line of the trace when set.
  std::ostream* trace = nullptr;
};

struct ClusterResult {
  // Empty when all went well; else the name of the check (kCheckNames) that found something first.
  std::string check;
  // What was found, with the seed and the last lines of the trace.
  std::string failure;
  std::uint64_t trace_hash = 0;
  Duration simulated{};
  std::uint64_t tasks = 0;  // that were run
  Incidents incidents;
};

ClusterResult SimulateCluster(const ClusterOptions& options);

}  // namespace muster::rendezvous
