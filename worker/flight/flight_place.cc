#include "worker/flight/flight_place.h"

#include <algorithm>

namespace muster::worker {
namespace {

// Whether a rank finishes one before it begins to wait in the other, or has asked for both at once
// and gets them in order. (Messages are in order only where they are alike.)
bool InOneLine(const FlightRecord& one, const FlightRecord& other) {
  if (one.group != other.group || one.part != other.part) return false;
  return one.part != FlightPart::kPair ||
         (one.operation == other.operation && one.tensor == other.tensor);
}

// The last operation of the rank in that part of that group; null when its log has none.
const FlightRecord* LastLike(const FlightRecord& record, const RankFlight& flight) {
  const auto found =
      std::find_if(flight.records.rbegin(), flight.records.rend(), [&](const FlightRecord& other) {
        return other.group == record.group && other.part == record.part;
      });
  return found == flight.records.rend() ? nullptr : &*found;
}

// Whether `flight` has yet to begin what `other` has begun last where it is.
bool IsBehind(const RankFlight& flight, const RankFlight& other) {
  const FlightRecord* const place = PlaceOf(other);
  if (place == nullptr) return false;
  const FlightRecord* const theirs = LastLike(*place, other);
  const FlightRecord* const ours = LastLike(*place, flight);
  // Messages have numbers of their own on each rank.
  if (place->part == FlightPart::kPair) return false;
  return ours == nullptr ? flight.records.empty() : ours->number < theirs->number;
}

bool IsIn(const RankFlight& flight) {
  const FlightRecord* const place = PlaceOf(flight);
  return place != nullptr && Waits(*place);
}

}  // namespace

const FlightRecord* PlaceOf(const RankFlight& flight) {
  const FlightRecord* place = nullptr;
  for (auto record = flight.records.begin(); record != flight.records.end(); ++record) {
    const bool waits = Waits(*record);
    const bool over =
        waits && std::any_of(record + 1, flight.records.end(), [&](const FlightRecord& later) {
          return !Waits(later) && InOneLine(*record, later);
        });
    if (over) continue;
    if (place == nullptr || (waits && !Waits(*place))) {
      place = &*record;
    } else if (waits) {
      // The first that it waits in, but those of a part of the ranks are inside those of all. (A
      // message between two may have been asked for long before it is needed.)
      if (record->group == place->group && record->part > place->part) place = &*record;
    } else if (!Waits(*place) && record->left_ns > place->left_ns) {
      place = &*record;
    }
  }
  return place;
}

std::vector<int> AwaitedRanks(const std::vector<RankFlight>& ranks) {
  std::vector<const RankFlight*> waiting;
  std::vector<const RankFlight*> elsewhere;
  for (const RankFlight& flight : ranks) {
    if (flight.kept) (IsIn(flight) ? waiting : elsewhere).push_back(&flight);
  }
  if (waiting.empty()) return {};
  const auto waits_for_one_of = [](const RankFlight* flight, const auto& others) {
    return std::any_of(others.begin(), others.end(),
                       [&](const RankFlight* other) { return IsBehind(*other, *flight); });
  };
  std::vector<int> awaited;
  for (const RankFlight* flight : elsewhere) {
    if (!waits_for_one_of(flight, elsewhere)) awaited.push_back(flight->rank);
  }
  if (!elsewhere.empty()) return awaited;
  for (const RankFlight* flight : waiting) {
    const bool is_awaited =
        std::any_of(waiting.begin(), waiting.end(),
                    [&](const RankFlight* other) { return IsBehind(*flight, *other); });
    if (is_awaited && !waits_for_one_of(flight, waiting)) awaited.push_back(flight->rank);
  }
  return awaited;
}

}  // namespace muster::worker
