#include "worker/flight_report.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "base/text.h"

namespace muster::worker {
namespace {

// Whether a rank always finishes one of these operations before the other. (Messages are ordered
// only among equal ones.)
bool InOneLine(const FlightRecord& one, const FlightRecord& other) {
  if (one.group != other.group || one.part != other.part) return false;
  return one.part != FlightPart::kPair ||
         (one.operation == other.operation && one.tensor == other.tensor);
}

// The rank's last operation in that part of that group; null if its log has none.
const FlightRecord* LastLike(const FlightRecord& record, const RankFlight& flight) {
  const auto found =
      std::find_if(flight.records.rbegin(), flight.records.rend(), [&](const FlightRecord& other) {
        return other.group == record.group && other.part == record.part;
      });
  return found == flight.records.rend() ? nullptr : &*found;
}

// Whether `flight` has not begun the last operation of the kind that `other` is in.
bool IsBehind(const RankFlight& flight, const RankFlight& other) {
  const FlightRecord* const place = PlaceOf(other);
  if (place == nullptr) return false;
  const FlightRecord* const theirs = LastLike(*place, other);
  const FlightRecord* const ours = LastLike(*place, flight);
  // Messages are numbered on each rank separately.
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
      // The first operation that it waits in; but operations of part of the ranks are inside those
      // of all. (A message may be requested long before it is needed.)
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

namespace {

// The operation's group, if there are `several`.
std::string OfGroup(const FlightRecord& record, bool several) {
  if (!record.group.empty()) return absl::StrCat(" of ", record.group);
  return several ? " of all ranks" : "";
}

std::string What(const FlightRecord& record, bool several) {
  const char* const where = record.part == FlightPart::kHost      ? " in shared memory"
                            : record.part == FlightPart::kLeaders ? " between hosts"
                                                                  : "";
  return absl::StrCat(record.operation, " ", record.number, OfGroup(record, several), where, " (",
                      record.tensor.empty() ? base::Count(record.bytes, "byte") : record.tensor,
                      ")");
}

// Ranks at one place.
struct Place {
  std::vector<int> ranks;
  const FlightRecord* record;  // of the first of them; null: nothing begun
  bool kept = true;            // false: they have no log
  std::int64_t since_ns = 0;   // of the rank that has been there longest

  bool IsOf(const FlightRecord* other, bool others_is_kept) const {
    if (kept != others_is_kept) return false;
    if (record == nullptr || other == nullptr) return record == other;
    if (record->part == FlightPart::kPair && record->tensor != other->tensor) return false;
    return record->group == other->group && record->part == other->part &&
           record->operation == other->operation && record->number == other->number &&
           Waits(*record) == Waits(*other);
  }
};

std::string Phrase(const Place& place, bool several, std::int64_t now_ns) {
  const bool one = place.ranks.size() == 1;
  const std::string who = absl::StrCat(one ? "rank " : "ranks ", absl::StrJoin(place.ranks, ", "));
  if (!place.kept) return absl::StrCat(who, one ? " keeps" : " keep", " no log");
  if (place.record == nullptr) return absl::StrCat(who, one ? " has" : " have", " begun nothing");
  const std::string time = base::Seconds(std::chrono::nanoseconds(now_ns - place.since_ns));
  if (!Waits(*place.record)) {
    return absl::StrCat(who, " left ", What(*place.record, several), " ", time, " ago");
  }
  return absl::StrCat(who, one ? " waits" : " wait", " in ", What(*place.record, several), " for ",
                      time);
}

}  // namespace

std::string ExplainFlights(const std::vector<RankFlight>& ranks, std::int64_t now_ns) {
  std::vector<Place> places;
  std::size_t elsewhere = 0;
  for (const RankFlight& flight : ranks) {
    const FlightRecord* const record = PlaceOf(flight);
    const std::int64_t since_ns = record == nullptr ? 0 : SinceNs(*record);
    const auto place = std::find_if(places.begin(), places.end(), [&](const Place& other) {
      return other.IsOf(record, flight.kept);
    });
    if (place == places.end() && places.size() == kShownPlaces) {
      ++elsewhere;
    } else if (place == places.end()) {
      places.push_back(
          {.ranks = {flight.rank}, .record = record, .kept = flight.kept, .since_ns = since_ns});
    } else {
      place->ranks.push_back(flight.rank);
      place->since_ns = std::min(place->since_ns, since_ns);
    }
  }
  const bool some_wait = std::any_of(places.begin(), places.end(), [](const Place& place) {
    return place.record != nullptr && Waits(*place.record);
  });
  if (!some_wait && LongestStay(ranks, now_ns) < kLongStay) return "";
  const bool several = std::any_of(places.begin(), places.end(), [](const Place& place) {
    return place.record != nullptr && !place.record->group.empty();
  });
  const std::string told = absl::StrJoin(places, "; ", [&](std::string* text, const Place& place) {
    text->append(Phrase(place, several, now_ns));
  });
  return elsewhere == 0 ? told
                        : absl::StrCat(told, "; ", base::Count(elsewhere, "more rank"),
                                       elsewhere == 1 ? " is" : " are", " elsewhere");
}

std::chrono::nanoseconds LongestStay(const std::vector<RankFlight>& ranks, std::int64_t now_ns) {
  std::int64_t longest = 0;
  for (const RankFlight& flight : ranks) {
    const FlightRecord* const record = PlaceOf(flight);
    if (record != nullptr) longest = std::max(longest, now_ns - SinceNs(*record));
  }
  return std::chrono::nanoseconds(longest);
}

std::int64_t LastMove(const std::vector<RankFlight>& ranks) {
  std::int64_t last = 0;
  for (const RankFlight& flight : ranks) {
    const FlightRecord* const record = PlaceOf(flight);
    if (record != nullptr) last = std::max(last, SinceNs(*record));
  }
  return last;
}

}  // namespace muster::worker
