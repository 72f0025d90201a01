#include "test/rendezvous/cluster/fake_workers.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace muster::rendezvous {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kGrace = seconds(5);
constexpr Duration kSlowestStart = milliseconds(800);
constexpr Duration kLongestEnd = milliseconds(100);

}  // namespace

FakeWorkers::FakeWorkers(World world, std::string node, Assignment assignment,
                         const WorkerHabits& habits, std::weak_ptr<Process> agent, Events events)
    : world_(world),
      node_(std::move(node)),
      assignment_(std::move(assignment)),
      habits_(habits),
      agent_(std::move(agent)),
      events_(std::move(events)) {}

void FakeWorkers::Start() {
  alive_ = true;
  world_.Log(node_, " runs round ", assignment_.round, " of ", assignment_.run_id);
  world_.checks.rounds.OnWorkersAlive(node_, assignment_);
  After(world_.random.Between(milliseconds(10), kSlowestStart), [this] {
    if (!stopping_) ToAgent(events_.on_started);
  });
  if (habits_.failures_per_1000_minutes > 0) {
    // The mean time to a failure is 1000 minutes divided by their number.
    const Duration longest = 2 * minutes(1000) / habits_.failures_per_1000_minutes;
    After(world_.random.Between(milliseconds(1), longest), [this] { Fail(); });
  }
  if (habits_.finish) return FinishSoon();
  After(world_.random.Between(habits_.work / 2, habits_.work), [this] {
    if (!stopping_) Die(true);
  });
}

void FakeWorkers::FinishSoon() {
  After(world_.random.Between(seconds(1), seconds(5)), [this] {
    if (!stopping_) Die(true);
  });
}

void FakeWorkers::Fail() {
  if (stopping_ || habits_.never_fail) return;
  const WorkerFailure failure{
      .rank = assignment_.base_rank, .host = node_, .exit_code = 1, .what = "exited with code 1"};
  world_.Log(node_, " fails in round ", assignment_.round);
  world_.checks.rounds.OnFailure(assignment_.run_id, assignment_.id(), failure.rank, node_);
  ToAgent([report = events_.on_first_failure, failure] { report(failure); });
  Stop();
}

void FakeWorkers::Stop() {
  if (!alive_ || std::exchange(stopping_, true)) return;
  if (!world_.random.Chance(habits_.ignores_term_per_100, 100)) {
    return After(world_.random.Between(milliseconds(1), milliseconds(300)), [this] { Die(false); });
  }
  world_.incidents.Count(Incident::kTermIgnored);
  After(kGrace, [this] {
    // The agent does it, when it can.
    ToAgent([weak = weak_from_this()] {
      if (const auto workers = weak.lock()) workers->Kill();
    });
  });
}

void FakeWorkers::LoseTouch() {
  ToAgent(events_.on_lost_touch);
  Kill();
}

void FakeWorkers::AgentDied(std::function<void()> when_gone) {
  when_gone_ = std::move(when_gone);
  DieWithin(kLongestEnd);
}

void FakeWorkers::DieWithin(Duration longest) {
  if (!alive_ || std::exchange(dying_, true)) return;
  stopping_ = true;
  After(microseconds(1 + world_.random.Below(longest / microseconds(1))), [this] { Die(false); });
}

void FakeWorkers::Die(bool succeeded) {
  if (!std::exchange(alive_, false)) return;
  world_.Log(node_, succeeded ? " has done round " : " has no workers of round ",
             assignment_.round);
  if (succeeded) {
    world_.checks.rounds.OnSuccess(assignment_.run_id, assignment_.id(), assignment_.group_rank);
  }
  world_.checks.rounds.OnWorkersDead(node_, assignment_, world_.scheduler.now());
  ToAgent([gone = events_.on_gone, succeeded] { gone(succeeded); });
  if (when_gone_) when_gone_();
}

void FakeWorkers::After(Duration delay, std::function<void()> task) {
  world_.scheduler.After(delay, [weak = weak_from_this(), task = std::move(task)] {
    const auto workers = weak.lock();
    if (workers != nullptr && workers->alive_) task();
  });
}

void FakeWorkers::ToAgent(std::function<void()> task) {
  if (const auto agent = agent_.lock()) agent->Do(std::move(task));
}

DeathNotice::DeathNotice(World world, int host, SessionToken session)
    : world_(world), session_(std::move(session)) {
  connection_ = world_.network.Connect(host, this);
}

DeathNotice::~DeathNotice() {
  if (connection_ != 0) world_.network.Abandon(connection_);
}

void DeathNotice::OnConnected(ConnectionId connection) {
  world_.network.Say(connection, AgentIsDead{session_});
  world_.network.Abandon(connection);
  connection_ = 0;
}

void FakeGuard::Watch(const std::shared_ptr<FakeWorkers>& workers, SessionToken session) {
  workers_ = workers;
  session_ = std::move(session);
  Look();
}

void FakeGuard::AgentDied() {
  const auto workers = workers_.lock();
  if (workers == nullptr || !workers->alive()) return;
  if (mutations_.guard_tells_too_early) Tell();
  workers->AgentDied([this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired() && !mutations_.guard_tells_too_early) Tell();
  });
}

void FakeGuard::Tell() {
  world_.incidents.Count(Incident::kDeathTold);
  notice_ = std::make_unique<DeathNotice>(world_, host_, session_);
}

void FakeGuard::SetDeadline(std::optional<TimePoint> deadline) {
  // A time that is passed when it is moved has been found passed before.
  deadline_ = deadline;
  Schedule();
}

void FakeGuard::Schedule() {
  if (!deadline_ || std::exchange(scheduled_, true)) return;
  world_.scheduler.At(*deadline_, [this, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) return;
    scheduled_ = false;
    Look();
    if (deadline_ && *deadline_ > world_.scheduler.now()) Schedule();
  });
}

void FakeGuard::Look() {
  const auto workers = workers_.lock();
  if (workers == nullptr || !workers->alive()) return;
  if (!deadline_ || *deadline_ > world_.scheduler.now()) return Schedule();
  world_.incidents.Count(Incident::kGuardStruck);
  workers->LoseTouch();
}

}  // namespace muster::rendezvous
