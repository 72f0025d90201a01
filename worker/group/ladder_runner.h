// Carries out the stop ladder: GroupLife decides, this acts on the processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "worker/group/group_life.h"
#include "worker/group/group_worker.h"
#include "worker/process/process_info.h"
#include "worker/tree/cgroup.h"
#include "worker/tree/signal_targets.h"
#include "worker/tree/worker_tree.h"
#include "worker/worker_spec.h"

namespace muster::worker {

struct LeftoversStopped : GroupPort::Stopped {
  // For the user, with those that got SIGTERM now; empty: none did.
  std::string sentence;
};

// The first signal is for the workers and whoever they wait for (signal_targets.h); what a worker
// leaves behind gets one of its own once the worker has ended; SIGKILL is for everything that came
// from the workers, wherever it went. What GroupPort says of its methods holds here (group_life.h).
// Lives with one WorkerGroup, on its thread; `tree`, `cgroup` and `workers` must outlive it.
class LadderRunner {
 public:
  // `cgroup` is the workers' control group; null: none.
  LadderRunner(WorkerTree& tree, const WorkerCgroup* cgroup, const GroupWorkers& workers)
      : tree_(tree), cgroup_(cgroup), workers_(workers) {}

  // Also continues processes that are stopped, all of the tree.
  void Signal(int signal);
  // Passes on a signal that is not a request to stop.
  void Forward(int signal);
  // SIGTERM to what workers have left behind, as if each of it were a worker.
  //
  // It waits until its worker has ended and everyone else of this worker's who has had a signal
  // and is answering it: a python whose shell has died may need the helpers of the shell's script
  // in order to save. Of whom it is not known what worker they came from, they wait for all.
  // Nobody gets the first signal twice, except a process that has no handler for it and should
  // have ended: it was between fork and exec, and has lost it in its parent's handler.
  LeftoversStopped StopLeftovers(StopLadder::Duration grace);
  // For the user: that the processes that ended workers have left running are killed, waited for,
  // or kept. Empty: there are none.
  std::string DescribeKill() const;
  std::string DescribeWait(StopLadder::Duration limit) const;
  std::string DescribeKept() const;
  // SIGKILL to all; with `again`, no longer through the control group.
  void Kill(bool again) const;
  // Something that came from the workers is still running.
  bool AnyLeft() const;
  // Gives up the workers that have not ended, and returns one sentence for each
  // process that is left behind.
  std::vector<std::string> LeaveBehind(StopLadder::Duration after) const;

 private:
  // Identifies a process even after its pid is reused.
  using Key = std::pair<pid_t, std::uint64_t>;
  static Key KeyOf(const ProcessInfo& info) { return {info.pid, info.start_time}; }

  // Signals the targets of `root`, and returns those reached, each with its signal.
  std::vector<SignalTarget> Send(const std::vector<ProcessInfo>& tree, const ProcessInfo& root,
                                 int signal, SignalPurpose purpose);
  // Signals one target, and records that for kStop. False if it has exited.
  bool SendTo(const SignalTarget& target, SignalPurpose purpose);
  // The pid of the worker that it came from; 0: unknown.
  pid_t WorkerOf(const ProcessInfo& info) const;
  bool IsAnswering(const ProcessInfo& info) const;
  // `what`, a colon and the processes; empty if there are none.
  std::string Say(const std::string& what, const std::vector<ProcessInfo>& processes) const;

  WorkerTree& tree_;
  const WorkerCgroup* const cgroup_;
  const GroupWorkers& workers_;
  // The tree just before the first signal: each process with its worker.
  std::map<Key, pid_t> before_;
  // The last signal from us that a process received and does not ignore, or kReminded.
  std::map<Key, int> had_;
};

// Leftovers in words, for the user.

// "python3 (pid 17), sleep (pid 19) and 4 more": the first eight by name.
std::string Enumerate(const std::vector<ProcessInfo>& processes);

}  // namespace muster::worker
