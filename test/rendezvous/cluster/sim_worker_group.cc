#include "test/rendezvous/cluster/sim_worker_group.h"

#include <algorithm>
#include <utility>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kSlowestWorkerStart = milliseconds(300);  // of one worker
// Where there is no process to be had at first, as in worker/group/group_worker.cc.
constexpr Duration kLongestRetry = seconds(2);

}  // namespace

SimWorkerGroup::SimWorkerGroup(World world, std::shared_ptr<Process> agent, Duration clock_offset,
                               worker::StopLadder ladder,
                               std::shared_ptr<WorkerProcesses> processes,
                               std::shared_ptr<SimGuard> guard, Callbacks callbacks)
    : world_(world),
      agent_(std::move(agent)),
      clock_offset_(clock_offset),
      processes_(std::move(processes)),
      guard_(std::move(guard)),
      callbacks_(std::move(callbacks)),
      // Nothing in here ends unasked.
      life_(*this, ladder, worker::LeftoverPolicy::kStop) {}

void SimWorkerGroup::Start(int workers) {
  // What happens to the processes is heard of by the agent, when that runs.
  processes_->SetEvents(
      {.on_exit =
           [weak = weak_from_this()](std::size_t worker, const worker::ExitStatus& status) {
             if (const auto group = weak.lock()) {
               group->InAgent([worker, status](SimWorkerGroup& g) { g.OnExit(worker, status); });
             }
           },
       .on_orphan_ended =
           [weak = weak_from_this()] {
             if (const auto group = weak.lock()) {
               group->InAgent([](SimWorkerGroup& g) { g.Live(&worker::GroupLife::OrphanEnded); });
             }
           }});
  life_.Begin();
  to_be_started_ = workers;
  StartNext();
}

void SimWorkerGroup::StartNext() {
  if (guard_->deadline() && *guard_->deadline() <= Now()) {
    world_.incidents.Count(Incident::kStartTooLate);
    dropped_ = true;
    to_be_started_ = 0;
    return InAgentAfter(Duration::zero(),
                        [](SimWorkerGroup& group) { group.Live(&worker::GroupLife::StartFailed); });
  }
  processes_->StartOne();
  guard_->Watch();
  workers_.emplace_back();
  life_.WorkerStarted();
  --to_be_started_;
  const bool retried = world_.random.Chance(1, 50);
  const Duration longest = retried ? kLongestRetry : kSlowestWorkerStart;
  InAgentAfter(world_.random.Between(milliseconds(1), longest), [](SimWorkerGroup& group) {
    if (group.dropped_) return;
    if (group.to_be_started_ > 0) return group.StartNext();
    group.Live(&worker::GroupLife::StartsOver);
  });
}

void SimWorkerGroup::Stop(const worker::StopLadder& ladder) {
  Live(&worker::GroupLife::Stop, ladder);
}

void SimWorkerGroup::OnExit(std::size_t index, const worker::ExitStatus& status) {
  Worker& worker = workers_[index];
  worker.status = status;
  const worker::WorkerEnd end = worker.stopped_by_group ? worker::WorkerEnd::kStopped
                                : status.Succeeded()    ? worker::WorkerEnd::kSucceeded
                                                        : worker::WorkerEnd::kFailed;
  Live(&worker::GroupLife::WorkerExited, index, end);
}

void SimWorkerGroup::ArmTimer() {
  const std::optional<TimePoint> due = life_.NextDeadline();
  if (due == armed_for_) return;
  armed_for_ = due;
  if (!due) return;
  InAgentAfter(std::max(*due - Now(), Duration::zero()), [due](SimWorkerGroup& group) {
    if (group.armed_for_ != due) return;
    group.armed_for_.reset();
    group.Live(&worker::GroupLife::Tick);
  });
}

void SimWorkerGroup::TellFirstFailure(std::optional<std::size_t> worker, bool) {
  const Assignment& assignment = processes_->assignment();
  if (!worker) {
    // No other start fails here than one that comes too late.
    return callbacks_.on_first_failure({.rank = assignment.base_rank, .host = processes_->node()},
                                       true);
  }
  const worker::ExitStatus status = *workers_[*worker].status;
  const int rank = assignment.base_rank + static_cast<int>(*worker);
  const bool killed = status.signal != 0;
  callbacks_.on_first_failure({.rank = rank,
                               .host = processes_->node(),
                               .exit_code = status.exit_code,
                               .signal = status.signal,
                               .what = killed ? "was killed" : "exited with code 1"},
                              killed && guard_->has_struck());
}

void SimWorkerGroup::Halt() {
  for (std::size_t index = 0; index < workers_.size(); ++index) {
    workers_[index].stopped_by_group = !workers_[index].status && !processes_->has_ended(index);
  }
  if (std::exchange(to_be_started_, 0) == 0) return;
  world_.incidents.Count(Incident::kStopsWhileItStarts);
  dropped_ = true;
  InAgentAfter(Duration::zero(),
               [](SimWorkerGroup& group) { group.Live(&worker::GroupLife::StartsOver); });
}

bool SimWorkerGroup::AnyLeft() {
  if (processes_->any()) world_.incidents.Count(Incident::kLeftovers);
  return processes_->any();
}

worker::GroupPort::Stopped SimWorkerGroup::StopLeftovers(worker::StopLadder::Duration) {
  // It reaches those that were born while the first signal was sent.
  processes_->Ask();
  return {.look_again = processes_->any_answers()};
}

void SimWorkerGroup::Finish() {
  guard_->Dismiss();
  processes_->SetEvents({});
  worker::GroupResult result{.end = life_.end()};
  for (std::size_t index = 0; index < workers_.size(); ++index) {
    result.exits.push_back({.rank = processes_->assignment().base_rank + static_cast<int>(index),
                            .status = workers_[index].status,
                            .stopped_by_group = workers_[index].stopped_by_group});
  }
  callbacks_.on_done(result);
}

void SimWorkerGroup::InAgent(std::function<void(SimWorkerGroup&)> task) {
  agent_->Do([weak = weak_from_this(), task = std::move(task)] {
    if (const auto group = weak.lock()) task(*group);
  });
}

void SimWorkerGroup::InAgentAfter(Duration delay, std::function<void(SimWorkerGroup&)> task) {
  agent_->After(delay, [weak = weak_from_this(), task = std::move(task)] {
    if (const auto group = weak.lock()) task(*group);
  });
}

}  // namespace muster::rendezvous
