#include "rendezvous/core/job/restart_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/phrases.h"

namespace muster::rendezvous {
namespace {

// A time without restarts that is so many times the longest delay is calm: what fails after it
// fails for the first time.
constexpr int kCalmFactor = 10;

// `window` completes the sentence where only restarts within it count.
std::string UsedUp(int restarts, const std::string& window) {
  return restarts == 1 ? absl::StrCat(", and the one restart", window, " is used up")
                       : absl::StrCat(", and all ", restarts, " restarts", window, " are used up");
}

}  // namespace

RestartBudget::RestartBudget(const JobSettings& settings)
    : max_restarts_(settings.max_restarts), policy_(settings.restart) {}

RestartBudget::RestartBudget(const JobRecord& record, TimePoint now)
    : max_restarts_(record.settings.max_restarts),
      policy_(record.settings.restart),
      spent_(record.restarts),
      repeated_(record.repeated) {
  for (const Duration& age : record.restart_ages) times_.push_back(now - age);
}

void RestartBudget::Count(const WorkerFailure& failure) {
  const bool repeats =
      failure.before_first_beat && failure.rank == repeated_.rank && failure.what == repeated_.what;
  repeated_ = {failure.rank, failure.what,
               failure.before_first_beat ? (repeats ? repeated_.times + 1 : 1) : 0};
}

RestartDecision RestartBudget::Decide(const WorkerFailure& failure, TimePoint now) const {
  if (max_restarts_ == 0) return NoRestart{};
  if (failure.final) return NoRestart{", after which no restart was to follow"};
  if (policy_.no_progress_limit > 0 && repeated_.times >= policy_.no_progress_limit) {
    return NoRestart{absl::StrCat(", ", repeated_.times,
                                  " times in a row and each time before its first beat; another "
                                  "restart would not help")};
  }
  if (policy_.window == Duration::zero()) {
    if (spent_ < max_restarts_) return RestartAfter{Delay(now)};
    return NoRestart{UsedUp(max_restarts_, "")};
  }
  const auto counts = [&](TimePoint time) { return now - time < policy_.window; };
  if (std::count_if(times_.begin(), times_.end(), counts) < max_restarts_) {
    return RestartAfter{Delay(now)};
  }
  return NoRestart{UsedUp(max_restarts_, absl::StrCat(" within ", base::Seconds(policy_.window)))};
}

Duration RestartBudget::Delay(TimePoint now) const {
  // How many restarts in a row came before this one, without a calm time between them.
  Duration delay = policy_.delay;
  TimePoint later = now;
  for (auto time = times_.rbegin(); time != times_.rend() && now - *time < Memory(); ++time) {
    if (delay >= policy_.longest_delay || later - *time >= kCalmFactor * policy_.longest_delay) {
      break;
    }
    delay = std::min(2 * delay, policy_.longest_delay);
    later = *time;
  }
  return delay;
}

Duration RestartBudget::Memory() const {
  return std::max(policy_.window, kCalmFactor * policy_.longest_delay);
}

void RestartBudget::Spend(TimePoint now) {
  while (!times_.empty() && now - times_.front() >= Memory()) times_.pop_front();
  ++spent_;
  if (Memory() > Duration::zero()) times_.push_back(now);
}

std::string RestartBudget::SpentInWords() const {
  if (policy_.window == Duration::zero()) {
    return absl::StrCat("restart ", spent_, " of ", max_restarts_);
  }
  return absl::StrCat("restart ", spent_, ", at most ", max_restarts_, " in ",
                      base::Seconds(policy_.window));
}

std::vector<Duration> RestartBudget::Ages(TimePoint now) const {
  std::vector<Duration> ages;
  for (const TimePoint& time : times_) ages.push_back(now - time);
  return ages;
}

}  // namespace muster::rendezvous
