// Whether a worker's failure is followed by a restart, and how many restarts a job has spent.
#pragma once

#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/core/record.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// The next round may start, `delay` from now at the earliest.
struct RestartAfter {
  Duration delay{};

  bool operator==(const RestartAfter&) const = default;
};

// The job ends. `because` completes the description of the failure: ", and no restart is left of
// 3"; empty when there is nothing to add, as the job was never to restart.
struct NoRestart {
  std::string because;

  bool operator==(const NoRestart&) const = default;
};

using RestartDecision = std::variant<RestartAfter, NoRestart>;

// The restarts that a job may spend: --max-restarts in all, or that many in any `window`. It also
// applies the rest of the RestartPolicy, to failures that repeat and to those that are final.
//
// A failure is first counted, then decided on; if a restart follows, it is spent:
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

  // A worker failed, and not as a consequence of something else: counts how often in a row it has
  // failed in this way. Changes nothing else.
  void Count(const WorkerFailure& failure);

  // What is to follow `failure`, the last that was counted. Changes nothing, so it may be asked
  // again.
  RestartDecision Decide(const WorkerFailure& failure, TimePoint now) const;

  // Takes one restart, now.
  void Spend(TimePoint now);

  // How many restarts were spent over the job's whole life.
  int spent() const { return spent_; }
  // The last of them, for people: "restart 2 of 3", "restart 2, at most 3 in 60 s".
  std::string SpentInWords() const;

  // For JobRecord: the ages of the restarts that still count, oldest first; and the failure that
  // was counted last.
  std::vector<Duration> Ages(TimePoint now) const;
  const RepeatedFailure& repeated() const { return repeated_; }

 private:
  // How long the restart that follows now has to wait.
  Duration Delay(TimePoint now) const;
  // For how long the time of a restart matters.
  Duration Memory() const;

  const int max_restarts_;
  const RestartPolicy policy_;

  int spent_ = 0;
  // When restarts happened, as far back as the policy needs; oldest first.
  std::deque<TimePoint> times_;
  RepeatedFailure repeated_;
};

}  // namespace muster::rendezvous
