// Carries out the stop ladder: does to the processes what GroupLife has decided.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "worker/group/group_worker.h"
#include "worker/process/process_info.h"
#include "worker/stop_ladder.h"
#include "worker/tree/cgroup.h"
#include "worker/tree/worker_tree.h"

namespace muster::worker {

// The rungs are for everything that came from the workers, wherever it went. Each method is one of
// GroupLife's actions, or the answer to one (group_life.h). Lives with one WorkerGroup, on its
// thread; `tree` and `cgroup` must outlive it.
class LadderRunner {
 public:
  // `cgroup` is the workers' control group; null: none.
  LadderRunner(WorkerTree& tree, const WorkerCgroup* cgroup) : tree_(tree), cgroup_(cgroup) {}

  // SignalTree: also continues processes that are stopped.
  void Signal(int signal);
  // NameLeftovers: the sentence for the user; empty: there are none.
  std::string NameLeftovers() const;
  // KillTree, and KillStragglers.
  void Kill() const;
  void KillStragglers() const;
  // LookForLeftovers: something that came from the workers is still running.
  bool AnyLeft() const;
  // RemindOfSignal: true when some are answering (RemindLeftovers).
  bool Remind(int first_signal);
  // LeaveBehind: gives up the workers that have not ended, and returns one sentence for each
  // process that is left behind.
  std::vector<std::string> LeaveBehind(StopLadder::Duration after,
                                       const GroupWorkers& workers) const;

 private:
  WorkerTree& tree_;
  const WorkerCgroup* const cgroup_;
  // The tree just before the first signal was sent.
  std::vector<ProcessInfo> before_first_signal_;
};

}  // namespace muster::worker
