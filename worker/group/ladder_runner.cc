#include "worker/group/ladder_runner.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "base/text.h"
#include "worker/process/process_state.h"

namespace muster::worker {
namespace {

// Replaces the signal in had_ after it was sent a second time.
constexpr int kReminded = 0;
// How many ranks a sentence names.
constexpr std::size_t kMostParts = 8;

}  // namespace

void LadderRunner::Signal(int signal) {
  const std::vector<ProcessInfo> tree = tree_.Members();
  for (const ProcessInfo& info : tree) before_.emplace(KeyOf(info), info.session);
  for (const ProcessInfo& worker : tree_.Workers(tree)) {
    for (const ProcessInfo& info : WithDescendants(tree, {worker.pid})) {
      before_[KeyOf(info)] = worker.pid;
    }
  }
  for (const ProcessInfo& worker : tree_.Workers(tree)) {
    Send(tree, worker, signal, SignalPurpose::kStop);
  }
  tree_.Signal({SIGCONT});
}

void LadderRunner::Forward(int signal) {
  const std::vector<ProcessInfo> tree = tree_.Members();
  for (const ProcessInfo& worker : tree_.Workers(tree)) {
    Send(tree, worker, signal, SignalPurpose::kNotice);
  }
}

std::vector<SignalTarget> LadderRunner::Send(const std::vector<ProcessInfo>& tree,
                                             const ProcessInfo& root, int signal,
                                             SignalPurpose purpose) {
  std::vector<SignalTarget> targets = SignalTargets(tree, root, signal, purpose, ReadTraits);
  const bool was_empty = targets.empty();
  std::erase_if(targets,
                [this, purpose](const SignalTarget& target) { return !SendTo(target, purpose); });
  // The target belongs to another user, or has just exited.
  if (targets.empty() && !was_empty && SendTo({root, signal}, purpose)) {
    targets.push_back({root, signal});
  }
  return targets;
}

bool LadderRunner::SendTo(const SignalTarget& target, SignalPurpose purpose) {
  // Checked before sending, as a handler may reset itself to ignore. An ignored signal does not
  // count as received, except SIGTERM, which nothing follows.
  const bool has_it = target.signal == SIGTERM ||
                      DispositionOf(target.process.pid, target.signal) != Disposition::kIgnored;
  if (!SignalProcess(target.process, target.signal)) return false;
  if (purpose == SignalPurpose::kStop && has_it) had_[KeyOf(target.process)] = target.signal;
  return true;
}

pid_t LadderRunner::WorkerOf(const ProcessInfo& info) const {
  const auto before = before_.find(KeyOf(info));
  // A worker leads a session, which its descendants share unless they create their own.
  const pid_t worker = before != before_.end() ? before->second : info.session;
  const bool is_worker = std::any_of(workers_.begin(), workers_.end(),
                                     [worker](const auto& one) { return one->pid() == worker; });
  return is_worker ? worker : 0;
}

bool LadderRunner::IsAnswering(const ProcessInfo& info) const {
  const auto had = had_.find(KeyOf(info));
  return had != had_.end() && had->second != kReminded &&
         DispositionOf(info.pid, had->second) == Disposition::kCaught;
}

LeftoversStopped LadderRunner::StopLeftovers(StopLadder::Duration grace) {
  LeftoversStopped result;
  const std::vector<ProcessInfo> leftovers = tree_.Leftovers();
  // Workers whose processes are still at work.
  std::set<pid_t> busy;
  for (const auto& worker : workers_) {
    if (!worker->status.has_value()) busy.insert(worker->pid());
  }
  for (const ProcessInfo& info : leftovers) {
    if (!IsAnswering(info)) continue;
    busy.insert(WorkerOf(info));
    result.look_again = true;
  }
  std::vector<ProcessInfo> named;
  for (const ProcessInfo& info : leftovers) {
    auto had = had_.find(KeyOf(info));
    // It got the signal between fork and exec, and now ignores it.
    if (had != had_.end() && had->second != SIGTERM && had->second != kReminded &&
        DispositionOf(info.pid, had->second) == Disposition::kIgnored) {
      had_.erase(had);
      had = had_.end();
    }
    if (had != had_.end()) {
      if (had->second == kReminded ||
          DispositionOf(info.pid, had->second) != Disposition::kDefault) {
        continue;
      }
      SignalProcess(info, had->second);
      had->second = kReminded;
      continue;
    }
    const pid_t worker = WorkerOf(info);
    const bool may_be_needed = worker != 0 ? busy.contains(worker) : !busy.empty();
    if (may_be_needed || !tree_.IsOrphan(info)) continue;
    for (const SignalTarget& target : Send(leftovers, info, SIGTERM, SignalPurpose::kStop)) {
      SignalProcess(target.process, SIGCONT);
      named.push_back(target.process);
      result.any_from_before |= before_.contains(KeyOf(target.process));
    }
  }
  result.look_again |= !named.empty();
  result.sentence = Say(
      absl::StrCat(
          "stopping processes that workers left behind (SIGTERM",
          grace == StopLadder::kForever ? "" : absl::StrCat(", SIGKILL in ", base::Seconds(grace)),
          ")"),
      named);
  return result;
}

std::string LadderRunner::Say(const std::string& what,
                              const std::vector<ProcessInfo>& processes) const {
  if (processes.empty()) return "";
  // Those of one rank together, in the order of the ranks; those of no known rank last.
  std::vector<std::string> parts;
  std::vector<ProcessInfo> others = processes;
  for (const auto& worker : workers_) {
    std::vector<ProcessInfo> own;
    for (const ProcessInfo& info : processes) {
      if (WorkerOf(info) == worker->pid()) own.push_back(info);
    }
    std::erase_if(others, [&](const ProcessInfo& info) { return WorkerOf(info) == worker->pid(); });
    if (own.empty()) continue;
    parts.push_back(absl::StrCat(Enumerate(own), " of rank ", worker->spec.rank));
  }
  if (!others.empty()) parts.push_back(Enumerate(others));
  if (parts.size() > kMostParts) {
    const std::size_t more = parts.size() - kMostParts;
    parts.resize(kMostParts);
    parts.push_back(absl::StrCat("and those of ", more, " more ranks"));
  }
  return absl::StrCat(what, ": ", absl::StrJoin(parts, ", "));
}

std::string LadderRunner::DescribeKill() const {
  return Say(
      "killing processes that workers left behind, as they did not exit within the grace period",
      tree_.Leftovers());
}

std::string LadderRunner::DescribeWait(StopLadder::Duration limit) const {
  return Say(
      absl::StrCat(
          "all workers have ended; waiting ",
          limit == StopLadder::kForever ? "" : absl::StrCat("up to ", base::Seconds(limit), " "),
          "for what they left running"),
      tree_.Leftovers());
}

std::string LadderRunner::DescribeKept() const {
  return Say("leaving behind what workers left running", tree_.Leftovers());
}

void LadderRunner::Kill(bool again) const {
  if (cgroup_ != nullptr && !again) cgroup_->Kill();
  tree_.Signal({SIGKILL});
}

bool LadderRunner::AnyLeft() const {
  // The control group is reliable; /proc may miss processes that fork and exit faster than it is
  // read. Those are noticed when they become orphans and exit.
  return (cgroup_ != nullptr && cgroup_->IsPopulated()) || !tree_.Leftovers().empty();
}

std::vector<std::string> LadderRunner::LeaveBehind(StopLadder::Duration after) const {
  const auto how = [after](const std::string& state) {
    return absl::StrCat(" did not end ", after.count(), " ms after SIGKILL and is left behind",
                        state.empty() ? "" : "; it ", state);
  };
  std::vector<std::string> sentences;
  const std::vector<ProcessInfo> leftovers = tree_.Leftovers();
  for (const auto& worker : workers_) {
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

namespace {

constexpr std::size_t kNamed = 8;

}  // namespace

std::string Enumerate(const std::vector<ProcessInfo>& processes) {
  const auto named = static_cast<std::ptrdiff_t>(std::min(processes.size(), kNamed));
  std::string text =
      absl::StrJoin(processes.begin(), processes.begin() + named, ", ",
                    [](std::string* out, const ProcessInfo& info) { *out += Describe(info); });
  if (processes.size() > kNamed)
    absl::StrAppend(&text, " and ", processes.size() - kNamed, " more");
  return text;
}

}  // namespace muster::worker
