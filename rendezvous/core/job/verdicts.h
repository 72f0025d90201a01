// How jobs end: each verdict with the sentence that every node shows.
#pragma once

#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// What all verdicts of a job have in common.
struct JobFacts {
  std::string run_id;
  int rounds = 0;    // that ran
  int restarts = 0;  // that were spent
};

// Every worker of the last round, which had these `members`, has exited with 0.
Verdict SucceededVerdict(const JobFacts& job, const std::vector<Placement>& members);

// A worker failed in `round` and no restart follows; `because` completes the description of the
// failure (NoRestart).
Verdict WorkerFailedVerdict(const JobFacts& job, RoundNumber round, const WorkerFailure& failure,
                            const std::string& because);

// A round did not complete in time; `why` is the result of Round::Explain.
Verdict JoinTimeoutVerdict(const JobFacts& job, const std::string& why);

// The daemon was told to end the job.
Verdict ClosedVerdict(const JobFacts& job, const std::string& why);

// The same without the failed worker's output, and with other texts cut short: at most 2 KB instead
// of 32.
Verdict WithoutQuotes(Verdict verdict);

// Whether a worker's failure is followed by a restart, and how many restarts a job has spent.

// The next round may start, `delay` from now at the earliest.
struct RestartAfter {
  Duration delay{};

  bool operator==(const RestartAfter&) const = default;
};

// The job ends. `because` completes the description of the failure: ", and no restart is left of
// 3"; empty if the job had no restarts to begin with.
struct NoRestart {
  std::string because;

  bool operator==(const NoRestart&) const = default;
};

using RestartDecision = std::variant<RestartAfter, NoRestart>;

// The restarts that a job may spend: --max-restarts in all, or that many in any `window`. Also
// applies the rest of the RestartPolicy: repeated and final failures.
//
// A failure is first counted, then decided on; a restart that follows is spent:
//
//   budget.Count(failure);
//   budget.Decide(failure, now) -> RestartAfter: budget.Spend(now), and the next round gathers
//                               -> NoRestart: the job ends
//
// Part of a Job, which owns it. Pure: the time comes in. Not thread-safe.
class RestartBudget {
 public:
  // Nothing is spent yet.
  explicit RestartBudget(const JobSettings& settings);
  // The budget of a recorded job, as if no time had passed since.
  RestartBudget(const JobRecord& record, TimePoint now);

  // A worker failed, and not as a consequence of another failure: counts how often in a row it has
  // failed in this way. Changes nothing else.
  void Count(const WorkerFailure& failure);

  // The decision about `failure`, the last that was counted. Changes nothing, so it may be called
  // again.
  RestartDecision Decide(const WorkerFailure& failure, TimePoint now) const;

  // Spends one restart, now.
  void Spend(TimePoint now);

  // Restarts spent over the job's whole life.
  int spent() const { return spent_; }
  // The last restart, for people: "restart 2 of 3", "restart 2, at most 3 in 60 s".
  std::string SpentInWords() const;

  // For JobRecord: the ages of the restarts that still count, oldest first; and the last counted
  // failure.
  std::vector<Duration> Ages(TimePoint now) const;
  const RepeatedFailure& repeated() const { return repeated_; }

 private:
  // How long the next restart has to wait.
  Duration Delay(TimePoint now) const;
  // How long a restart's time still matters.
  Duration Memory() const;

  const int max_restarts_;
  const RestartPolicy policy_;

  int spent_ = 0;
  // When restarts happened, as far back as the policy needs; oldest first.
  std::deque<TimePoint> times_;
  RepeatedFailure repeated_;
};

}  // namespace muster::rendezvous
