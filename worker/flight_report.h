// Where each rank is, judging by its log.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/flight_log.h"

namespace muster::worker {

// The record of where the rank is: the first of the operations that it waits in, or the one that it
// left last. Null if it has begun none. Points into `flight`.
//
// An operation without an end is over if the rank has finished a later one of the same group and
// part: failed operations are never left, and a program that catches the failure continues.
const FlightRecord* PlaceOf(const RankFlight& flight);

// Whether the rank is still in the operation, if this is its place.
inline bool Waits(const FlightRecord& record) {
  return record.left_ns == 0;
}

// When the rank entered or left the operation, if this is its place.
inline std::int64_t SinceNs(const FlightRecord& record) {
  return Waits(record) ? record.entered_ns : record.left_ns;
}

// The ranks that others of `ranks` wait for, as far as their logs show. If some ranks are in
// operations and some in none: the latter. If all are in operations: those that have begun fewer
// than another rank of the same part of the same group, and wait for no rank themselves. Empty if
// the logs do not show it: no rank waits, all are in the same operation, or they exchange messages.
std::vector<int> AwaitedRanks(const std::vector<RankFlight>& ranks);

// Where each rank is, in words, for error messages and reports.

// One phrase for all ranks at the same place, joined by "; ": "ranks 0, 2 wait in all-reduce 812
// (h.2.c_proj.weight) for 300 s; rank 1 left all-reduce 811 (h.3.c_fc.weight) 301 s ago". The
// others wait for ranks in no operation, or else for those with the lowest number in the same part
// of the same group (AwaitedRanks()). Empty if no rank is in an operation or has been outside one
// for kLongStay, as a rank is that hangs elsewhere while ranks of other nodes wait for it. After
// kShownPlaces places the remaining ranks are only counted.
std::string ExplainFlights(const std::vector<RankFlight>& ranks, std::int64_t now_ns);
inline constexpr std::size_t kShownPlaces = 64;

// An operation, or a pause between two, that takes longer is worth reporting.
inline constexpr std::chrono::seconds kLongStay(1);

// How long the rank that moved least recently has been at its place; 0 if no rank has begun an
// operation.
std::chrono::nanoseconds LongestStay(const std::vector<RankFlight>& ranks, std::int64_t now_ns);

// When a rank last entered or left an operation; 0 if no rank has begun any. An explanation made
// since then is still valid.
std::int64_t LastMove(const std::vector<RankFlight>& ranks);

}  // namespace muster::worker
