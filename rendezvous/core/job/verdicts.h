// How jobs end: each verdict with the sentence that every node shows.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/core/rank_order.h"
#include "rendezvous/core/types.h"

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

// A round did not complete in time; `why` is what Round::Explain says.
Verdict JoinTimeoutVerdict(const JobFacts& job, const std::string& why);

// The job was told to end.
Verdict ClosedVerdict(const JobFacts& job, const std::string& why);

// The same without what the failed worker wrote, and other texts cut short: at most 2 KB instead of
// 32.
Verdict WithoutQuotes(Verdict verdict);

}  // namespace muster::rendezvous
