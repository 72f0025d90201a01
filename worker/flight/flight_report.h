// Where each rank is, in words, for error messages and reports.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/flight/flight_place.h"

namespace muster::worker {

// One phrase for all ranks at the same place, joined by "; ": "ranks 0, 2 wait in all-reduce 812
// (h.2.c_proj.weight) for 300 s; rank 1 left all-reduce 811 (h.3.c_fc.weight) 301 s ago". The
// others wait for ranks that are in no operation; else, of those in operations of the same part of
// the same group, for the ones with the lowest number (AwaitedRanks() knows). Empty
// when no rank is in an operation, nor has been in none for kLongStay, as one that hangs elsewhere
// while ranks of other nodes wait for it. The ranks beyond the first kShownPlaces places are only
// counted.
std::string ExplainFlights(const std::vector<RankFlight>& ranks, std::int64_t now_ns);
inline constexpr std::size_t kShownPlaces = 64;

// An operation, or a time between two, that takes longer is worth a line.
inline constexpr std::chrono::seconds kLongStay(1);

// For how long the rank that has moved least recently is where it is, in an operation or in none; 0
// when no rank has begun any.
std::chrono::nanoseconds LongestStay(const std::vector<RankFlight>& ranks, std::int64_t now_ns);

// When a rank has moved last: entered the operation that it is in, or left its last one; 0 when no
// rank has begun any. What was told of the ranks since then still holds.
std::int64_t LastMove(const std::vector<RankFlight>& ranks);

}  // namespace muster::worker
