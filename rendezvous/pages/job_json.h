// A job as JSON: for `muster status --json` and for the daemon's HTTP.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "rendezvous/core/snapshot.h"

namespace muster::rendezvous {

// The job, its rounds and its nodes, as docs/observing.md says. A missing rank is null; times are
// seconds. Bytes that are not UTF-8 become U+FFFD when it is printed.
base::Json ToJson(const JobSnapshot& job);

// All of them, as an array.
base::Json ToJson(const std::vector<JobSnapshot>& jobs);

// The first rank of each node's workers. They follow from those of the nodes before it, so behind
// one that has left already they are not known.
std::vector<std::optional<int>> FirstRanks(const JobSnapshot& job);

// The share of the job's age in which it was productive (JobSnapshot::productive), from 0 to 1; of
// one that has only begun, 0.
double Goodput(const JobSnapshot& job);

// The ranks of the current round.
int CountRanks(const JobSnapshot& job);

}  // namespace muster::rendezvous
