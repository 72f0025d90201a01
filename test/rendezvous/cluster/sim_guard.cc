#include "test/rendezvous/cluster/sim_guard.h"

#include <utility>

namespace muster::rendezvous {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using worker::DeadMansSwitch;

// From what wakes it until it runs.
constexpr std::int64_t kLongestWake = 300;  // microseconds
// As in worker/tree/orphan_guard.cc.
constexpr Duration kHuntLimit = seconds(30);
constexpr Duration kHuntPause = milliseconds(20);

}  // namespace

DeathNotice::DeathNotice(World world, int host, int place, SessionToken session)
    : world_(world), session_(std::move(session)) {
  connection_ = world_.network.Connect(host, this, place);
}

DeathNotice::~DeathNotice() {
  if (connection_ != 0) world_.network.Abandon(connection_);
}

void DeathNotice::OnConnected(ConnectionId connection) {
  world_.network.Say(connection, AgentIsDead{session_});
  world_.network.Abandon(connection);
  connection_ = 0;
}

SimGuard::SimGuard(World world, int host, int place, Duration clock_offset,
                   const AgentMutations& mutations, std::shared_ptr<WorkerProcesses> processes,
                   SessionToken session)
    : world_(world),
      host_(host),
      clock_offset_(clock_offset),
      mutations_(mutations),
      processes_(std::move(processes)),
      session_(std::move(session)),
      place_(place) {}

void SimGuard::SetDeadline(std::optional<TimePoint> deadline) {
  constexpr TimePoint kNever = TimePoint::max();
  const TimePoint after = deadline.value_or(kNever);
  const TimePoint before = std::exchange(deadline_, deadline).value_or(kNever);
  if (after < before || before <= Now()) Look();
}

void SimGuard::Watch() {
  if (struck_) Look();
}

void SimGuard::MoveDeathNotice(int place) {
  has_moved_ = has_moved_ || place != place_;
  place_ = place;
}

void SimGuard::Look() {
  if (std::exchange(look_is_due_, true)) return;
  world_.scheduler.After(microseconds(world_.random.Below(kLongestWake)),
                         [weak = weak_from_this()] {
                           const auto guard = weak.lock();
                           if (guard == nullptr) return;
                           guard->look_is_due_ = false;
                           guard->Run(DeadMansSwitch::Event::kLook);
                         });
}

void SimGuard::AgentGone() {
  processes_->ParentDied();
  world_.scheduler.After(milliseconds(world_.random.Below(20)), [weak = weak_from_this()] {
    if (const auto guard = weak.lock()) guard->Run(DeadMansSwitch::Event::kAgentGone);
  });
}

void SimGuard::Run(DeadMansSwitch::Event event) {
  while (!over_) {
    const DeadMansSwitch::Step step = switch_.Next(event, Now(), deadline_);
    event = DeadMansSwitch::Event::kNothing;
    ++sleep_;
    switch (step.kind) {
      case DeadMansSwitch::Step::kSleep:
        if (!step.until) return;
        return world_.scheduler.At(
            *step.until - clock_offset_ + microseconds(world_.random.Below(kLongestWake)),
            [weak = weak_from_this(), sleep = sleep_] {
              const auto guard = weak.lock();
              if (guard == nullptr || guard->sleep_ != sleep) return;
              guard->Run(DeadMansSwitch::Event::kNothing);
            });
      case DeadMansSwitch::Step::kStrike:
        Strike();
        break;
      case DeadMansSwitch::Step::kKillLate:
        processes_->Kill();
        break;
      case DeadMansSwitch::Step::kStandIn:
        return StandIn();
    }
  }
}

void SimGuard::Strike() {
  struck_ = true;
  if (!processes_->alive()) return;
  world_.Log("the guard of ", processes_->node(), " strikes");
  world_.incidents.Count(Incident::kGuardStruck);
  if (must_not_strike_) {
    world_.checks.violations.Add(Check::kGrace,
                                 absl::StrCat("the guard of ", processes_->node(),
                                              " kills its workers, whose ranks nobody gives away"));
  }
  processes_->Kill();
}

void SimGuard::StandIn() {
  if (mutations_.guard_tells_too_early) Tell();
  processes_->Kill();
  TellWhenAllAreGone(world_.scheduler.now() + kHuntLimit);
}

// If anything may be left it says nothing.
void SimGuard::TellWhenAllAreGone(TimePoint until) {
  if (over_ || notice_ != nullptr) return;
  if (!processes_->any()) return Tell();
  if (world_.scheduler.now() >= until) {
    over_ = true;
    return;
  }
  world_.scheduler.After(kHuntPause, [weak = weak_from_this(), until] {
    if (const auto guard = weak.lock()) guard->TellWhenAllAreGone(until);
  });
}

void SimGuard::Tell() {
  world_.incidents.Count(Incident::kDeathTold);
  if (has_moved_) world_.incidents.Count(Incident::kDeathToldToTheNext);
  notice_ = std::make_unique<DeathNotice>(world_, host_, place_, session_);
}

}  // namespace muster::rendezvous
