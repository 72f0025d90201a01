#include "test/rendezvous/cluster/worker_processes.h"

#include <csignal>
#include <utility>

namespace muster::rendezvous {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kLongestAnswer = milliseconds(300);
// Longer than any lease, grace and join timeout that is drawn, but for those that are for ever.
constexpr Duration kSlowAnswer = seconds(2);
constexpr Duration kSlowestAnswer = seconds(150);
// One in so many processes that are killed stays in the kernel for a while, running no code of its
// own: longer than worker::StopLadder::give_up, or not.
constexpr int kLingers = 400;
constexpr Duration kLongestLingering = seconds(8);

}  // namespace

WorkerProcesses::WorkerProcesses(World world, std::string node, Assignment assignment,
                                 const WorkerHabits& habits, int workers)
    : world_(world),
      node_(std::move(node)),
      assignment_(std::move(assignment)),
      habits_(habits),
      workers_(workers),
      finishes_(world_.scheduler.now() +
                (habits.finish ? world_.random.Between(seconds(1), seconds(5))
                               : world_.random.Between(habits.work / 2, habits.work))) {}

std::size_t WorkerProcesses::Add(int worker) {
  Member member{.worker = worker};
  member.ignores = world_.random.Chance(habits_.ignores_term_per_100, 100);
  member.answers_after = world_.random.Chance(habits_.ends_slowly_per_100, 100)
                             ? world_.random.Between(kSlowAnswer, kSlowestAnswer)
                             : world_.random.Between(milliseconds(1), kLongestAnswer);
  processes_.push_back(member);
  ++left_;
  if (running_++ == 0) {
    world_.Log(node_, " runs round ", assignment_.round, " of ", assignment_.run_id);
    world_.checks.rounds.OnWorkersAlive(node_, assignment_);
  }
  return processes_.size() - 1;
}

void WorkerProcesses::StartOne() {
  const std::size_t index = Add(static_cast<int>(by_worker_.size()));
  by_worker_.push_back(index);
  if (habits_.failures_per_1000_minutes > 0) {
    // The mean time to a failure of the node is 1000 minutes divided by their number.
    const Duration longest = 2 * minutes(1000) / habits_.failures_per_1000_minutes;
    After(world_.random.Between(milliseconds(1), longest), [this, index] { Fail(index); });
  }
  PlanWork(index);
  if (!world_.random.Chance(habits_.leaves_child_per_100, 100)) return;
  After(world_.random.Between(milliseconds(1), seconds(2)), [this, index] {
    // The kernel lets none fork that is about to be killed.
    if (processes_[index].runs && !processes_[index].killed) Add(-1);
  });
}

void WorkerProcesses::PlanWork(std::size_t index) {
  const Duration left = std::max(finishes_ - world_.scheduler.now(), Duration::zero());
  After(left + world_.random.Between(milliseconds(0), milliseconds(50)),
        [this, index] { Succeed(index); });
}

void WorkerProcesses::FinishSoon() {
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    After(world_.random.Between(seconds(1), seconds(5)), [this, index] { Succeed(index); });
  }
}

void WorkerProcesses::ObeySoon() {
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    if (processes_[index].asked) EndSoon(index, seconds(3));
  }
}

bool WorkerProcesses::any_answers() const {
  for (const Member& member : processes_) {
    if (!member.gone && !member.ignores) return true;
  }
  return false;
}

// One that was asked to end does not look at how its work is going.
void WorkerProcesses::Fail(std::size_t index) {
  Member& member = processes_[index];
  if (!member.runs || member.asked || habits_.never_fail) return;
  const int rank = assignment_.base_rank + member.worker;
  world_.Log(node_, ": rank ", rank, " fails in round ", assignment_.round);
  world_.checks.rounds.OnFailure(assignment_.run_id, assignment_.id(), rank, node_);
  End(index, {.exit_code = 1}, Duration::zero());
}

void WorkerProcesses::Succeed(std::size_t index) {
  const Member& member = processes_[index];
  if (!member.runs || member.asked || member.worker < 0) return;
  if (++succeeded_ == workers_) {
    world_.Log(node_, " has done round ", assignment_.round);
    world_.checks.rounds.OnSuccess(assignment_.run_id, assignment_.id(), assignment_.group_rank);
  }
  End(index, {}, Duration::zero());
}

void WorkerProcesses::Ask() {
  for (std::size_t index = 0; index < processes_.size(); ++index) AskOne(index);
}

void WorkerProcesses::AskOne(std::size_t index) {
  Member& member = processes_[index];
  if (!member.runs || std::exchange(member.asked, true)) return;
  if (habits_.obey) return EndSoon(index, kLongestAnswer);
  if (member.ignores) return world_.incidents.Count(Incident::kTermIgnored);
  if (member.answers_after > kLongestAnswer) world_.incidents.Count(Incident::kEndsSlowly);
  After(member.answers_after, [this, index] { End(index, {.signal = SIGTERM}, Duration::zero()); });
}

void WorkerProcesses::Kill() {
  for (std::size_t index = 0; index < processes_.size(); ++index) KillOne(index);
}

void WorkerProcesses::ParentDied() {
  for (const std::size_t index : by_worker_) KillOne(index);
}

void WorkerProcesses::KillOne(std::size_t index) {
  Member& member = processes_[index];
  if (!member.runs || std::exchange(member.killed, true)) return;
  Duration lingers{};
  if (world_.random.Chance(1, kLingers)) {
    world_.incidents.Count(Incident::kUnkillable);
    lingers = world_.random.Between(milliseconds(100), kLongestLingering);
  }
  After(microseconds(1 + world_.random.Below(5'000)),
        [this, index, lingers] { End(index, {.signal = SIGKILL}, lingers); });
}

void WorkerProcesses::PowerOff() {
  events_ = {};
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    End(index, {.signal = SIGKILL}, Duration::zero());
    if (!std::exchange(processes_[index].gone, true)) --left_;
  }
}

void WorkerProcesses::EndSoon(std::size_t index, Duration longest) {
  After(world_.random.Between(milliseconds(1), longest),
        [this, index] { End(index, {.signal = SIGTERM}, Duration::zero()); });
}

void WorkerProcesses::End(std::size_t index, worker::ExitStatus status, Duration lingers) {
  if (!std::exchange(processes_[index].runs, false)) return;
  if (--running_ == 0) {
    world_.Log(node_, " has no workers of round ", assignment_.round);
    world_.checks.rounds.OnWorkersDead(node_, assignment_, world_.scheduler.now());
  }
  if (lingers == Duration::zero()) return TellEnd(index, status);
  After(lingers, [this, index, status] { TellEnd(index, status); });
}

void WorkerProcesses::TellEnd(std::size_t index, const worker::ExitStatus& status) {
  if (std::exchange(processes_[index].gone, true)) return;
  --left_;
  const int worker = processes_[index].worker;
  if (worker < 0) {
    if (events_.on_orphan_ended) events_.on_orphan_ended();
  } else if (events_.on_exit) {
    events_.on_exit(static_cast<std::size_t>(worker), status);
  }
}

void WorkerProcesses::After(Duration delay, std::function<void()> task) {
  world_.scheduler.After(delay, [weak = weak_from_this(), task = std::move(task)] {
    if (const auto processes = weak.lock()) task();
  });
}

}  // namespace muster::rendezvous
