#include "rendezvous/core/job/verdicts.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "rendezvous/core/values/phrases.h"

namespace muster::rendezvous {
namespace {

constexpr std::size_t kBriefText = 512;

Verdict MakeVerdict(const JobFacts& job, VerdictKind kind, const std::string& what) {
  return {.kind = kind,
          .sentence = absl::StrCat("job '", job.run_id, "'", what),
          .rounds = job.rounds,
          .restarts = job.restarts};
}

// After this many times the longest delay without a restart, the next failure counts as the first.
constexpr int kCalmFactor = 10;

// `window` completes the sentence if only restarts within it count.
std::string UsedUp(int restarts, const std::string& window) {
  return restarts == 1 ? absl::StrCat(", and the one restart", window, " is used up")
                       : absl::StrCat(", and all ", restarts, " restarts", window, " are used up");
}

}  // namespace

Verdict SucceededVerdict(const JobFacts& job, const std::vector<Placement>& members) {
  int workers = 0;
  for (const Placement& member : members) workers += member.node->slots;
  return MakeVerdict(
      job, VerdictKind::kSucceeded,
      absl::StrCat(" succeeded: ", base::Count(workers, "worker"), " on ",
                   base::Count(members.size(), "node"), ", ", base::Count(job.rounds, "round"),
                   ", ", base::Count(job.restarts, "restart")));
}

Verdict WorkerFailedVerdict(const JobFacts& job, RoundNumber round, const WorkerFailure& failure,
                            const std::string& because) {
  Verdict verdict = MakeVerdict(
      job, VerdictKind::kWorkerFailed,
      absl::StrCat(" failed in round ", round, ": ", DescribeFailure(failure), because));
  verdict.root_cause = failure;
  return verdict;
}

Verdict JoinTimeoutVerdict(const JobFacts& job, const std::string& why) {
  return MakeVerdict(job, VerdictKind::kJoinTimeout, ": " + why);
}

Verdict ClosedVerdict(const JobFacts& job, const std::string& why) {
  return MakeVerdict(job, VerdictKind::kClosed, " was closed: " + why);
}

Verdict WithoutQuotes(Verdict verdict) {
  if (!verdict.root_cause) return verdict;
  WorkerFailure& failure = *verdict.root_cause;
  failure.stderr_tail.clear();
  failure.error_traceback.clear();
  for (std::string* const text : {&failure.error_message, &failure.operations}) {
    text->resize(std::min(text->size(), kBriefText));
  }
  return verdict;
}

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
  // Counts the restarts in a row before this one, without a calm period between them.
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
