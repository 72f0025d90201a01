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

}  // namespace muster::worker
