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
// when no rank is in an operation. The ranks beyond the first kShownPlaces places are only counted.
std::string ExplainFlights(const std::vector<RankFlight>& ranks, std::int64_t now_ns);
inline constexpr std::size_t kShownPlaces = 64;

// For how long the rank that has waited longest is in its operation; 0 when no rank is in one.
std::chrono::nanoseconds LongestWait(const std::vector<RankFlight>& ranks, std::int64_t now_ns);

}  // namespace muster::worker
