#include "worker/group/ladder_runner.h"

#include <csignal>

#include "absl/strings/str_cat.h"
#include "worker/process/process_state.h"
#include "worker/tree/leftovers.h"

namespace muster::worker {

void LadderRunner::Signal(int signal) {
  before_first_signal_ = tree_.Members();
  tree_.Signal({signal, SIGCONT});
}

std::string LadderRunner::NameLeftovers() const {
  const std::vector<ProcessInfo> leftovers = tree_.Leftovers();
  if (leftovers.empty()) return "";
  return absl::StrCat("killing what workers left behind, as it did not end in the grace time: ",
                      Enumerate(leftovers));
}

void LadderRunner::Kill() const {
  if (cgroup_ != nullptr) cgroup_->Kill();
  tree_.Signal({SIGKILL});
}

void LadderRunner::KillStragglers() const {
  tree_.Signal({SIGKILL});
}

bool LadderRunner::AnyLeft() const {
  // The control group knows for certain; /proc may show nothing of processes that fork and end
  // faster than it is read. These will be heard of again, as orphans that have ended.
  return (cgroup_ != nullptr && cgroup_->IsPopulated()) || !tree_.Leftovers().empty();
}

bool LadderRunner::Remind(int first_signal) {
  return RemindLeftovers(tree_.Leftovers(), before_first_signal_, first_signal);
}

std::vector<std::string> LadderRunner::LeaveBehind(StopLadder::Duration after,
                                                   const GroupWorkers& workers) const {
  const auto how = [after](const std::string& state) {
    return absl::StrCat(" did not end ", after.count(), " ms after SIGKILL and is left behind",
                        state.empty() ? "" : "; it ", state);
  };
  std::vector<std::string> sentences;
  const std::vector<ProcessInfo> leftovers = tree_.Leftovers();
  for (const auto& worker : workers) {
    if (worker->status.has_value()) continue;
    worker->stuck = DescribeState(worker->pid());
    worker->process->Abandon();
    sentences.push_back(
        absl::StrCat("rank ", worker->spec.rank, ": process ", worker->pid(), how(worker->stuck)));
  }
  for (const ProcessInfo& leftover : leftovers) {
    sentences.push_back(absl::StrCat(Describe(leftover), ", which a worker had started,",
                                     how(DescribeState(leftover.pid))));
  }
  return sentences;
}

}  // namespace muster::worker
