// Which rounds, ranks and streams of a job a reader of logs has asked for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/core/job/job.h"
#include "rendezvous/core/job/log_places.h"
#include "rendezvous/core/log_request.h"

namespace muster::rendezvous {

// "rank 3", "ranks 0 to 7".
std::string RanksOf(const LogPlace& place);

// Those of the place's ranks that are in `wanted`; all of them if that is empty.
std::vector<RankRange> WantedOf(const LogPlace& place, const std::vector<RankRange>& wanted);

// Those that are of one of these ranks.
std::vector<LogPosition> PositionsIn(const std::vector<RankRange>& ranks,
                                     const std::vector<LogPosition>& all);

// Whether he has lost a daemon, and goes on where he was.
bool ComesBack(const LogRequest& request);

// The round that is read first, or an error that says why there is none; null: there is none yet.
absl::StatusOr<const LogPlacesOfRound*> FirstRound(const LogRequest& request, const Job& job);

// Whether the round has all the ranks.
absl::Status CheckRanks(const LogRequest& request, const LogPlacesOfRound& round);

}  // namespace muster::rendezvous
