#include "worker/hang/culprit.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace muster::worker {
namespace {

template <typename Condition>
std::vector<HangSuspect> Those(const std::vector<HangSuspect>& suspects, Condition condition) {
  std::vector<HangSuspect> those;
  std::copy_if(suspects.begin(), suspects.end(), std::back_inserter(those), condition);
  return those;
}

}  // namespace

Culprit PickCulprit(const std::vector<HangSuspect>& suspects,
                    const std::vector<RankFlight>& flights) {
  if (suspects.empty()) std::abort();
  // What others are in, which beat or have exited, says nothing of why these do not go on.
  std::vector<RankFlight> logs;
  std::copy_if(
      flights.begin(), flights.end(), std::back_inserter(logs), [&](const RankFlight& flight) {
        return std::any_of(suspects.begin(), suspects.end(),
                           [&](const HangSuspect& suspect) { return suspect.rank == flight.rank; });
      });
  const std::vector<int> awaited = AwaitedRanks(logs);
  const auto is_awaited = [&](const HangSuspect& suspect) {
    return std::find(awaited.begin(), awaited.end(), suspect.rank) != awaited.end();
  };

  std::vector<HangSuspect> left =
      Those(suspects, [](const HangSuspect& suspect) { return suspect.stopped; });
  const bool known = !left.empty() || !awaited.empty();
  if (left.empty()) left = suspects;
  const std::vector<HangSuspect> both = Those(left, is_awaited);
  const int rank = both.empty() ? left.front().rank : both.front().rank;
  const bool waits = std::any_of(logs.begin(), logs.end(), [&](const RankFlight& flight) {
    const FlightRecord* const place = PlaceOf(flight);
    return flight.rank == rank && flight.kept && place != nullptr && Waits(*place);
  });
  return {.rank = rank, .only_waits = !known && waits};
}

}  // namespace muster::worker
