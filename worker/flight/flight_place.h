// Where a rank is, judging by its log.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/flight/flight_record.h"

namespace muster::worker {

// The log of one rank.
struct RankFlight {
  int rank = 0;
  std::vector<FlightRecord> records;  // oldest first
  bool kept = true;                   // false: it has opened no log, so nothing is known of it
};

// The record of where the rank is: of the operations that it is in the one that it waits in first,
// or the one that it left last. Null when it has begun none. A pointer into `flight`.
//
// An operation is over, even if nothing says that it was left, when the rank has finished a later
// one of the same group and part: what has failed is not left, and a program that catches the
// failure goes on.
const FlightRecord* PlaceOf(const RankFlight& flight);

// Whether the rank is in the operation, if this is where it is.
inline bool Waits(const FlightRecord& record) {
  return record.left_ns == 0;
}

// Since when the rank is there, if this is where it is: entered or left at this time.
inline std::int64_t SinceNs(const FlightRecord& record) {
  return Waits(record) ? record.entered_ns : record.left_ns;
}

// The ranks that others of `ranks` wait for, as far as their logs tell: those that are in no
// operation while others are; if all are in operations, those that have begun fewer of the same
// part of the same group than another one that waits in it, and wait for nobody themselves. Empty
// when the logs do not tell: nobody waits, or all are in the same operation, or in messages.
std::vector<int> AwaitedRanks(const std::vector<RankFlight>& ranks);

}  // namespace muster::worker
