#include "worker/group/group_life.h"

#include <algorithm>

#include "base/earliest.h"

namespace muster::worker {

GroupActions GroupLife::StartsOver() {
  starts_over_ = true;
  GroupActions actions;
  if (state_ == State::kRunning) actions.push_back(TellStarted{});
  for (const GroupAction& action : LookIfNoneRuns()) actions.push_back(action);
  return actions;
}

GroupActions GroupLife::StartFailed() {
  starts_over_ = true;
  if (state_ == State::kDone || end_ == GroupEnd::kFailed) return LookIfNoneRuns();
  // Also when the group was stopped meanwhile: it had not succeeded before.
  end_ = GroupEnd::kFailed;
  return {TellFirstFailure{}};
}

GroupActions GroupLife::WorkerExited(std::size_t worker, WorkerEnd end) {
  --running_;
  if (end != WorkerEnd::kFailed) return LookIfNoneRuns();
  if (state_ == State::kRunning) {
    end_ = GroupEnd::kFailed;
    return {TellFirstFailure{worker}};
  }
  GroupActions actions = {KeepFailure{worker}};
  for (const GroupAction& action : LookIfNoneRuns()) actions.push_back(action);
  return actions;
}

GroupActions GroupLife::WorkerKilled(std::size_t worker) {
  if (state_ != State::kRunning || end_ == GroupEnd::kFailed) return {};
  end_ = GroupEnd::kFailed;
  return {TellFirstFailure{worker}};
}

GroupActions GroupLife::FailureTold(TimePoint now) {
  GroupActions actions;
  if (state_ == State::kRunning) BeginStop(ladder_, now, actions);
  for (const GroupAction& action : LookIfNoneRuns()) actions.push_back(action);
  return actions;
}

GroupActions GroupLife::Stop(const StopLadder& ladder, TimePoint now) {
  GroupActions actions;
  if (state_ == State::kRunning) {
    if (end_ != GroupEnd::kFailed) end_ = GroupEnd::kStopped;
    BeginStop(ladder, now, actions);
  } else if (state_ == State::kStopping) {
    HastenKill(ladder, now, actions);
  }
  return actions;
}

void GroupLife::BeginStop(const StopLadder& ladder, TimePoint now, GroupActions& actions) {
  state_ = State::kStopping;
  first_signal_ = ladder.first_signal;
  give_up_ = ladder.give_up;
  actions.push_back(Halt{});
  if (!ladder.KillsAtOnce()) actions.push_back(SignalTree{ladder.first_signal});
  HastenKill(ladder, now, actions);
}

void GroupLife::HastenKill(const StopLadder& ladder, TimePoint now, GroupActions& actions) {
  if (ladder.KillsAtOnce()) return Kill(now, actions);
  if (ladder.grace == StopLadder::kForever) return;
  const TimePoint kill_at = now + ladder.grace;
  rung_at_ = rung_at_.has_value() ? std::min(*rung_at_, kill_at) : kill_at;
}

void GroupLife::Kill(TimePoint now, GroupActions& actions) {
  state_ = State::kKilling;
  rung_at_ = now + give_up_;
  remind_at_.reset();
  actions.push_back(KillTree{});
}

GroupActions GroupLife::LookIfNoneRuns() const {
  const bool over = state_ == State::kNew || state_ == State::kDone;
  if (over || running_ > 0 || !starts_over_) return {};
  return {LookForLeftovers{}};
}

GroupActions GroupLife::LeftoversSeen(bool any, TimePoint now) {
  if (state_ == State::kDone) return {};
  if (!any) return Finish();
  GroupActions actions;
  if (state_ == State::kKilling) {
    actions.push_back(KillStragglers{});
    return actions;
  }
  if (pause_ == std::chrono::milliseconds::zero()) {
    pause_ = kSettle;
    remind_at_ = now + pause_;
  }
  if (state_ == State::kRunning) BeginStop(ladder_, now, actions);
  return actions;
}

GroupActions GroupLife::LeftoversReminded(bool answering, TimePoint now) {
  if (state_ != State::kStopping || !answering) return {};
  pause_ *= 2;
  remind_at_ = now + pause_;
  return {};
}

GroupActions GroupLife::Tick(TimePoint now) {
  GroupActions actions;
  if (rung_at_.has_value() && *rung_at_ <= now) {
    if (state_ == State::kKilling) {
      actions = Finish();
      actions.insert(actions.begin(), LeaveBehind{give_up_});
    } else {
      actions.push_back(NameLeftovers{});
      Kill(now, actions);
    }
  } else if (remind_at_.has_value() && *remind_at_ <= now) {
    remind_at_.reset();
    actions.push_back(RemindOfSignal{first_signal_});
  }
  return actions;
}

std::optional<GroupLife::TimePoint> GroupLife::NextDeadline() const {
  return base::Earliest(rung_at_, remind_at_);
}

GroupActions GroupLife::Finish() {
  state_ = State::kDone;
  rung_at_.reset();
  remind_at_.reset();
  return {FinishGroup{}};
}

}  // namespace muster::worker
