#include "worker/group/group_life.h"

#include <algorithm>
#include <utility>

#include "base/durations.h"

namespace muster::worker {

void GroupLife::StartsOver(TimePoint now) {
  starts_over_ = true;
  if (state_ == State::kRunning) port_.TellStarted();
  const bool all_held = running_ == 0 && !held_.empty();
  all_held ? TellHeld(true, now) : LookIfNoneRuns(now);
}

void GroupLife::StartFailed(TimePoint now) {
  starts_over_ = true;
  if (state_ == State::kDone || end_ == GroupEnd::kFailed) return LookIfNoneRuns(now);
  // Also when the group was stopped meanwhile: it had not succeeded before.
  TellFirst(std::nullopt, now);
}

void GroupLife::WorkerExited(std::size_t worker, WorkerEnd end, TimePoint now) {
  const bool hold = IsToBeHeld(end);
  --running_;
  any_ended_ = true;
  if (hold) {
    held_.push_back(worker);
    if (running_ == 0 && starts_over_) return TellHeld(true, now);
    if (held_.size() == 1) held_until_ = now + kForAlike;
    return;
  }
  StopLeftoversSoon(now);
  const bool failed = end == WorkerEnd::kFailed || end == WorkerEnd::kFailedAsAllMay;
  if (state_ == State::kRunning && (failed || !held_.empty())) {
    if (failed) held_.push_back(worker);
    return TellHeld(false, now);
  }
  if (failed) port_.KeepFailure(worker, false);
  LookIfNoneRuns(now);
}

bool GroupLife::IsToBeHeld(WorkerEnd end) const {
  return end == WorkerEnd::kFailedAsAllMay && state_ == State::kRunning &&
         end_ != GroupEnd::kFailed && (!any_ended_ || !held_.empty());
}

// The first of them is the first failure, and the others follow, unless the group stops already.
void GroupLife::TellHeld(bool alike, TimePoint now) {
  alike_ = alike;
  held_until_.reset();
  if (state_ == State::kRunning && end_ != GroupEnd::kFailed) {
    const std::size_t first = held_.front();
    held_.erase(held_.begin());
    return TellFirst(first, now);
  }
  KeepHeld();
  LookIfNoneRuns(now);
}

void GroupLife::KeepHeld() {
  for (const std::size_t worker : std::exchange(held_, {})) port_.KeepFailure(worker, alike_);
  held_until_.reset();
}

void GroupLife::WorkerKilled(std::size_t worker, TimePoint now) {
  if (state_ == State::kRunning && end_ != GroupEnd::kFailed) TellFirst(worker, now);
}

void GroupLife::TellFirst(std::optional<std::size_t> worker, TimePoint now) {
  end_ = GroupEnd::kFailed;
  port_.TellFirstFailure(worker, alike_);
  // It may have called Stop().
  KeepHeld();
  if (state_ == State::kRunning) BeginStop(ladder_, now);
  LookIfNoneRuns(now);
}

void GroupLife::OrphanEnded(TimePoint now) {
  StopLeftoversSoon(now);
  LookIfNoneRuns(now);
}

void GroupLife::Stop(const StopLadder& ladder, TimePoint now) {
  if (state_ == State::kRunning) {
    if (end_ != GroupEnd::kFailed) end_ = GroupEnd::kStopped;
    BeginStop(ladder, now);
    // With the next Tick(), as the group may be done with it.
    if (!held_.empty()) held_until_ = now;
  } else if (state_ == State::kWaiting) {
    BeginStop(ladder, now);
  } else if (state_ == State::kStopping) {
    HastenKill(ladder, now);
  }
}

void GroupLife::BeginStop(const StopLadder& ladder, TimePoint now) {
  const bool has_waited = state_ == State::kWaiting;
  state_ = State::kStopping;
  rung_at_.reset();
  grace_ = ladder.grace;
  give_up_ = ladder.give_up;
  port_.Halt();
  if (!ladder.KillsAtOnce()) {
    port_.SignalWorkers(ladder.first_signal);
  } else if (end_ == GroupEnd::kSucceeded) {
    port_.NameLeftovers();
  }
  HastenKill(ladder, now);
  if (any_ended_) StopLeftoversSoon(now);
  // They have had their time to settle.
  if (has_waited && state_ == State::kStopping) leftovers_at_ = now;
}

void GroupLife::HastenKill(const StopLadder& ladder, TimePoint now) {
  grace_ = std::min(grace_, ladder.grace);
  if (ladder.KillsAtOnce()) return Kill(now);
  if (ladder.grace == StopLadder::kForever) return;
  const TimePoint kill_at = now + ladder.grace;
  rung_at_ = rung_at_.has_value() ? std::min(*rung_at_, kill_at) : kill_at;
}

void GroupLife::Kill(TimePoint now) {
  state_ = State::kKilling;
  rung_at_ = now + give_up_;
  leftovers_at_.reset();
  port_.KillTree(/*again=*/false);
}

void GroupLife::LookIfNoneRuns(TimePoint now) {
  const bool over = state_ == State::kNew || state_ == State::kDone;
  if (over || running_ > 0 || !held_.empty() || !starts_over_) return;
  if (!port_.AnyLeft()) return Finish();
  if (state_ == State::kKilling) {
    port_.KillTree(/*again=*/true);
  } else if (state_ == State::kRunning) {
    SettleLeftovers(now);
  }
}

void GroupLife::SettleLeftovers(TimePoint now) {
  if (policy_ == LeftoverPolicy::kKeep) {
    port_.KeepLeftovers();
    Finish();
  } else if (policy_ == LeftoverPolicy::kStop || ladder_.KillsAtOnce()) {
    BeginStop(ladder_, now);
  } else {
    state_ = State::kWaiting;
    if (ladder_.grace != StopLadder::kForever) rung_at_ = now + ladder_.grace;
    leftovers_at_ = now + kSilence;
  }
}

void GroupLife::StopLeftoversSoon(TimePoint now) {
  if (state_ != State::kStopping) return;
  pause_ = kSettle;
  leftovers_at_ = std::min(leftovers_at_.value_or(TimePoint::max()), now + pause_);
}

void GroupLife::StopLeftovers(TimePoint now) {
  const GroupPort::Stopped stopped = port_.StopLeftovers(grace_);
  if (stopped.any_from_before && rung_at_.has_value()) rung_at_ = now + grace_;
  if (!stopped.look_again) return;
  pause_ *= 2;
  leftovers_at_ = now + pause_;
}

void GroupLife::Tick(TimePoint now) {
  if (held_until_.has_value() && *held_until_ <= now) {
    TellHeld(false, now);
  } else if (rung_at_.has_value() && *rung_at_ <= now) {
    if (state_ == State::kKilling) {
      port_.LeaveBehind(give_up_);
      Finish();
    } else if (state_ == State::kWaiting) {
      BeginStop(ladder_, now);
    } else {
      port_.NameLeftovers();
      Kill(now);
    }
  } else if (leftovers_at_.has_value() && *leftovers_at_ <= now) {
    leftovers_at_.reset();
    state_ == State::kWaiting ? port_.SayWaiting(ladder_.grace) : StopLeftovers(now);
  }
}

std::optional<GroupLife::TimePoint> GroupLife::NextDeadline() const {
  return base::Earliest(base::Earliest(rung_at_, leftovers_at_), held_until_);
}

void GroupLife::Finish() {
  state_ = State::kDone;
  rung_at_.reset();
  leftovers_at_.reset();
  held_until_.reset();
  port_.Finish();
}

}  // namespace muster::worker
