#include "rendezvous/keeper/supervisor.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text.h"

namespace muster::rendezvous {
namespace {

// A shell's exit code for a signal, less the signal.
constexpr int kKilled = 128;

std::string Phrase(DaemonEnd end) {
  return base::ExitPhrase(end.exit_code, end.signal);
}

bool InGoodOrder(DaemonEnd end) {
  return end.signal == 0 && end.exit_code == 0;
}

// For a daemon that was told to shut down.
bool HasObeyed(DaemonEnd end) {
  return InGoodOrder(end) || (end.signal == 0 && end.exit_code == SupervisorPolicy::kLeadsNoLonger);
}

int ExitCodeAfter(DaemonEnd end) {
  return end.signal != 0 ? kKilled + end.signal : end.exit_code;
}

}  // namespace

SupervisorPolicy::Start SupervisorPolicy::StartAgain(TimePoint now, Start how) {
  state_ = State::kStarting;
  since_ = now;
  return how;
}

SupervisorPolicy::Actions SupervisorPolicy::OnReadToGo(TimePoint now) {
  // If it was told to shut down meanwhile, it does so either way.
  if (state_ == State::kStarting) {
    state_ = State::kServing;
    since_ = now;
  }
  answers_ = false;
  return {LetGo{}};
}

SupervisorPolicy::Actions SupervisorPolicy::OnReady(int port) {
  if (std::exchange(was_ready_, true)) return {};
  return {Announce{port}};
}

SupervisorPolicy::Actions SupervisorPolicy::OnDied(DaemonEnd end, TimePoint now) {
  if (state_ == State::kEnding) {
    if (HasObeyed(end)) return {End{0}};
    return {Log{true, absl::StrCat("the daemon ", Phrase(end), " while stopping")},
            End{ExitCodeAfter(end)}};
  }
  if (state_ == State::kReplaced) {
    Actions actions;
    if (!HasObeyed(end)) {
      actions = {Log{true, absl::StrCat("the daemon ", Phrase(end), " while stopping")}};
    }
    actions.emplace_back(StartAgain(now, {.new_program = true}));
    return actions;
  }
  if (InGoodOrder(end)) return {End{0}};
  if (!was_ready_ && end.signal == 0) return {End{end.exit_code}};

  if (state_ == State::kServing && now - since_ >= kServesWell) {
    has_served_well_ = true;
    next_pause_ = Duration::zero();
  }
  const bool is_unusable = end.exit_code == kUnusable;
  if (is_unusable && !has_served_well_) return {End{end.exit_code}};
  const Duration longest = is_unusable ? kLongestPauseOfUnusable : kLongestPause;
  pause_ = std::min(next_pause_, longest);
  next_pause_ = std::clamp(2 * next_pause_, kFirstPause, longest);
  if (pause_ == Duration::zero()) {
    return {Log{true, absl::StrCat("the daemon ", Phrase(end), "; restarting it")},
            StartAgain(now, {.after_death = true})};
  }
  state_ = State::kDead;
  since_ = now;
  Actions actions = {Log{true, absl::StrCat("the daemon ", Phrase(end), "; restarting it in ",
                                            base::Seconds(pause_))}};
  if (was_ready_ && !std::exchange(answers_, true)) actions.emplace_back(Answer{true});
  return actions;
}

SupervisorPolicy::Actions SupervisorPolicy::OnToldToEnd(int signal) {
  if (state_ == State::kDead) return {End{0}};
  state_ = State::kEnding;
  // A daemon that has not proceeded ends at once; its agents wait for the next keeper.
  if (std::exchange(answers_, false)) return {Answer{false}, Signal{signal}};
  return {Signal{signal}};
}

SupervisorPolicy::Actions SupervisorPolicy::OnToldToReplace(const absl::Status& configuration,
                                                            TimePoint now) {
  if (state_ == State::kEnding) return {};
  if (!configuration.ok()) {
    return {Log{true, absl::StrCat("SIGHUP: ", configuration.message(),
                                   "; the daemon goes on with the configuration read last")}};
  }
  if (state_ == State::kReplaced) return {};
  Actions actions = {
      Log{false, "SIGHUP: the daemon is started again, with the program that is there now"}};
  if (state_ == State::kDead) {
    actions.emplace_back(StartAgain(now, {.new_program = true}));
    return actions;
  }
  state_ = State::kReplaced;
  actions.emplace_back(Signal{SIGTERM});
  return actions;
}

SupervisorPolicy::Actions SupervisorPolicy::OnTime(TimePoint now) {
  const std::optional<TimePoint> due = deadline();
  if (!due || now < *due) return {};
  if (state_ == State::kDead) return {StartAgain(now, {.after_death = true})};
  answers_ = true;
  return {Answer{true}};
}

std::optional<SupervisorPolicy::TimePoint> SupervisorPolicy::deadline() const {
  if (state_ == State::kDead) return since_ + pause_;
  if (state_ == State::kStarting && was_ready_ && !answers_) return since_ + kMoment;
  return std::nullopt;
}

}  // namespace muster::rendezvous
