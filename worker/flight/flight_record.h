// One operation of one worker, as it is told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/flight/flight_layout.h"

namespace muster::worker {

// Which of a group's ranks take part in an operation: two of them, all, those of a host, or the
// hosts' leaders. Leaders meet inside operations of their hosts.
enum class FlightPart : std::uint8_t { kPair, kAll, kHost, kLeaders };
inline constexpr std::size_t kFlightParts = 4;

// One operation of one rank. Times are nanoseconds of CLOCK_MONOTONIC, which is one clock for all
// processes of a host, and never negative.
struct FlightRecord {
  std::string group;  // its name; empty for the group of all ranks
  FlightPart part = FlightPart::kAll;
  std::string operation;     // "all-reduce"
  std::uint32_t number = 0;  // within that part of the group, from 1; but for pairs, the same on
                             // all ranks that take part
  std::string tensor;        // its name, or for a pair the other rank; empty when there is neither
  std::uint64_t bytes = 0;
  std::int64_t entered_ns = 0;
  std::int64_t left_ns = 0;  // 0: not finished

  bool operator==(const FlightRecord&) const = default;
};

// The records that `slots` hold, in the order in which the operations began. Nothing in a slot is
// trusted: texts become printable ASCII, and what does not lie where its ticket belongs is left
// out. `slots` are those of a log, in their order there, which nobody writes any more.
std::vector<FlightRecord> FlightsIn(const std::vector<FlightSlot>& slots);

}  // namespace muster::worker
