// A log of the operations that a rank takes part in, which other processes can read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "worker/flight/flight_layout.h"
#include "worker/flight/flight_record.h"

namespace muster::worker {

// An operation that begins, as FlightRecord describes it.
struct FlightEntry {
  std::string_view group;
  FlightPart part = FlightPart::kAll;
  std::string_view operation;
  std::uint32_t number = 0;
  std::string_view tensor;
  std::uint64_t bytes = 0;
  std::int64_t now_ns = 0;
};

// A ring buffer with the last operations of one rank, in memory that other processes map or read
// too, so that they can tell where the rank is even when it hangs or has died. Texts that are too
// long are cut off. Writing takes less than a microsecond and never waits.
//
// Any thread of the rank may write, and any process may read at the same time.
class FlightLog {
 public:
  // `memory` is kFlightLogBytes long, aligned to 64, and zeroed (but for its header) before the
  // rank writes; it must outlive this object.
  explicit FlightLog(std::byte* memory) : memory_(memory) {}

  // The rank begins an operation. Returns a ticket for Leave().
  std::uint64_t Enter(const FlightEntry& entry);
  // The operation has succeeded. Do not call it for one that failed: the log then shows that the
  // rank was in it.
  void Leave(std::uint64_t ticket, std::int64_t now_ns);

  // The last operations, oldest first, without any that is just being written.
  std::vector<FlightRecord> Read() const;

 private:
  struct Slot;
  Slot& SlotOf(std::uint64_t ticket) const;

  std::byte* const memory_;
};

// The header of an empty log.
FlightHeader NewFlightHeader();
// Whether a log that begins so has the layout that is written and read here.
bool IsKnown(const FlightHeader& header);

// The time for Enter() and Leave().
std::int64_t FlightNow();

}  // namespace muster::worker
