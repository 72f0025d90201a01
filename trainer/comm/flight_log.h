// A log of the operations that a rank takes part in, which the other ranks of its host can read.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/comm/operation.h"

namespace muster::trainer {

// The ranks that take part in an operation: all of them, those of a host, or the hosts' leaders. A
// later one is used inside operations of an earlier one.
enum class FlightGroup : std::uint8_t { kRanks, kHost, kLeaders };
inline constexpr std::size_t kFlightGroups = 3;

// One operation of one rank. Times are nanoseconds of CLOCK_MONOTONIC, which is one clock for all
// processes of a host.
struct FlightRecord {
  FlightGroup group = FlightGroup::kRanks;
  Operation operation = Operation::kAllReduce;
  std::uint32_t number = 0;  // within the group, from 1; the same on all of its ranks
  std::string tensor;        // its name; empty when it has none
  std::uint64_t bytes = 0;
  std::int64_t entered_ns = 0;
  std::int64_t left_ns = 0;  // 0: not finished

  bool operator==(const FlightRecord&) const = default;
};

// A ring buffer with the last operations of one rank, in memory that other processes map too, so
// that they can read it even when the rank hangs or has died. Names that are too long are cut off.
// Writing takes less than a microsecond and never waits.
//
// Any thread of the rank may write, and any process may read at the same time.
class FlightLog {
 public:
  static constexpr std::size_t kRecords = 64;
  static constexpr std::size_t kNameBytes = 64;

  // The size of a log, a multiple of 64.
  static std::size_t Bytes();

  // `memory` is Bytes() long, aligned to 64, and zeroed before the rank writes; it must outlive
  // this object.
  explicit FlightLog(std::byte* memory) : ring_(reinterpret_cast<Ring*>(memory)) {}

  // The rank begins an operation. All members of a group must begin its operations in the same
  // order. Returns a ticket for Leave().
  std::uint64_t Enter(FlightGroup group, Operation operation, std::string_view tensor,
                      std::uint64_t bytes, std::int64_t now_ns);
  // The operation has succeeded. Do not call it for one that failed: the log then shows that the
  // rank was in it.
  void Leave(std::uint64_t ticket, std::int64_t now_ns);

  // The last operations, oldest first, without any that is just being written.
  std::vector<FlightRecord> Read() const;

 private:
  struct Slot;
  struct Ring;
  Slot& slot(std::uint64_t ticket) const;

  Ring* const ring_;
};

// The time for Enter() and Leave().
std::int64_t FlightNow();

}  // namespace muster::trainer
