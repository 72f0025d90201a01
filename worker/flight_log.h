// One operation of one worker, as read from its log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "worker/flight_layout.h"

namespace muster::worker {

// Which ranks of a group take part in an operation: two of them, all, those of a host, or the
// hosts' leaders. Leaders operate inside operations of their hosts.
enum class FlightPart : std::uint8_t { kPair, kAll, kHost, kLeaders };
inline constexpr std::size_t kFlightParts = 4;

// One operation of one rank. Times are nanoseconds of CLOCK_MONOTONIC, which all processes of a
// host share, and never negative.
struct FlightRecord {
  std::string group;  // name; empty for the group of all ranks
  FlightPart part = FlightPart::kAll;
  std::string operation;     // "all-reduce"
  std::uint32_t number = 0;  // in that part of the group, from 1; but for pairs equal on all ranks
  std::string tensor;        // name, or the other rank of a pair; empty if unknown
  std::uint64_t bytes = 0;
  std::int64_t entered_ns = 0;
  std::int64_t left_ns = 0;  // 0: not finished

  bool operator==(const FlightRecord&) const = default;
};

// The records in `slots`, in the order in which the operations began. Slots are not trusted: texts
// become printable ASCII, and records in the wrong slot for their ticket are left out. `slots` is a
// copy of a log's, in order, that is no longer written to.
std::vector<FlightRecord> FlightsIn(const std::vector<FlightSlot>& slots);

// A log of a rank's operations that other processes can read.

// An operation that begins; the fields are FlightRecord's.
struct FlightEntry {
  std::string_view group;
  FlightPart part = FlightPart::kAll;
  std::string_view operation;
  std::uint32_t number = 0;
  std::string_view tensor;
  std::uint64_t bytes = 0;
  std::int64_t now_ns = 0;
};

// A ring buffer of one rank's last operations, in memory shared with other processes, which can
// thus see where the rank is even if it hangs or has died. Cuts texts that are too long. Writing
// takes less than a microsecond and never blocks.
//
// Any thread of the rank may write, and any process may read at the same time.
class FlightLog {
 public:
  // `memory` is kFlightLogBytes long, aligned to 64, and zero except for its header before the rank
  // writes; it must outlive this object.
  explicit FlightLog(std::byte* memory) : memory_(memory) {}

  // The rank begins an operation. Returns the ticket for Leave().
  std::uint64_t Enter(const FlightEntry& entry);
  // The operation succeeded. Do not call this after a failure, so that the log shows the rank in
  // it.
  void Leave(std::uint64_t ticket, std::int64_t now_ns);

  // The last operations, oldest first, without those being written.
  std::vector<FlightRecord> Read() const;

 private:
  struct Slot;
  Slot& SlotOf(std::uint64_t ticket) const;

  std::byte* const memory_;
};

// The header of an empty log.
FlightHeader NewFlightHeader();
// Whether the header is that of the layout used here.
bool IsKnown(const FlightHeader& header);

// The time for Enter() and Leave().
std::int64_t FlightNow();

}  // namespace muster::worker
