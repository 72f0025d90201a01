#include "rendezvous/core/log_choice.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rendezvous/core/values/limits.h"

namespace muster::rendezvous {
namespace {

std::string RanksInWords(int first, int last) {
  return first == last ? absl::StrCat("rank ", first) : absl::StrCat("ranks ", first, " to ", last);
}

}  // namespace

std::string RanksOf(const LogPlace& place) {
  return RanksInWords(place.first_rank, place.first_rank + place.workers - 1);
}

std::vector<RankRange> WantedOf(const LogPlace& place, const std::vector<RankRange>& wanted) {
  const RankRange all{place.first_rank, place.first_rank + place.workers - 1};
  if (wanted.empty()) return {all};
  std::vector<RankRange> ranks;
  for (const RankRange& range : wanted) {
    const RankRange both{std::max(range.first, all.first), std::min(range.last, all.last)};
    if (both.first <= both.last) ranks.push_back(both);
  }
  return ranks;
}

std::vector<LogPosition> PositionsIn(const std::vector<RankRange>& ranks,
                                     const std::vector<LogPosition>& all) {
  std::vector<LogPosition> positions;
  for (const LogPosition& position : all) {
    const bool is_wanted = std::any_of(ranks.begin(), ranks.end(), [&](const RankRange& range) {
      return range.first <= position.rank && position.rank <= range.last;
    });
    if (is_wanted) positions.push_back(position);
  }
  return positions;
}

bool ComesBack(const LogRequest& request) {
  return request.incarnation != 0 && request.round.has_value();
}

absl::StatusOr<const LogPlacesOfRound*> FirstRound(const LogRequest& request, const Job& job) {
  const auto& known = job.log_places().rounds();
  if (request.round) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const LogPlacesOfRound& each) {
      return each.round == *request.round;
    });
    if (found != known.end()) return &*found;
    if (ComesBack(request)) {
      const LogPlacesOfRound* const next = job.log_places().FindAfter(*request.round);
      if (next != nullptr || !job.ended()) return next;
    }
    return absl::OutOfRangeError(absl::StrCat(
        "round ", *request.round, " of job '", job.run_id(), "' is not known here",
        known.empty()
            ? ""
            : absl::StrCat("; rounds ", known.front().round, " to ", known.back().round, " are")));
  }
  if (request.previous) {
    if (known.size() > 1) return &known[known.size() - 2];
    return absl::OutOfRangeError(
        absl::StrCat("no round of job '", job.run_id(), "' before the last one is known here"));
  }
  return known.empty() ? nullptr : &known.back();
}

absl::Status CheckRanks(const LogRequest& request, const LogPlacesOfRound& round) {
  const LogPlace& last = round.places.back();
  const int ranks = last.first_rank + last.workers;
  for (const RankRange& range : request.ranks) {
    if (range.first < 0 || range.last < range.first) {
      return absl::InvalidArgumentError(
          absl::StrCat("from rank ", range.first, " to rank ", range.last, " there is none"));
    }
    if (range.last >= ranks) {
      return absl::OutOfRangeError(absl::StrCat("round ", round.round, " of job '", request.run_id,
                                                "' has ", RanksInWords(0, ranks - 1),
                                                ", and no rank ", std::max(range.first, ranks)));
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::rendezvous
