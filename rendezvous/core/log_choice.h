// Which rounds, ranks and streams of a job a log reader asked for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/core/job/job.h"
#include "rendezvous/core/job/job_history.h"
#include "rendezvous/core/values/log_request.h"

namespace muster::rendezvous {

// "rank 3", "ranks 0 to 7".
std::string RanksOf(const LogPlace& place);

// The place's ranks that are in `wanted`; all of them if that is empty.
std::vector<RankRange> WantedOf(const LogPlace& place, const std::vector<RankRange>& wanted);

// The positions whose rank is in `ranks`.
std::vector<LogPosition> PositionsIn(const std::vector<RankRange>& ranks,
                                     const std::vector<LogPosition>& all);

// Whether the reader lost a daemon and continues where it was.
bool ComesBack(const LogRequest& request);

// The round to read first, or an error that says why there is none; null: there is none yet.
absl::StatusOr<const LogPlacesOfRound*> FirstRound(const LogRequest& request, const Job& job);

// Whether the round has all the requested ranks.
absl::Status CheckRanks(const LogRequest& request, const LogPlacesOfRound& round);

}  // namespace muster::rendezvous
