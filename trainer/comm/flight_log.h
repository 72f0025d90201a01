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

// Which of a group's ranks take part in an operation: two of them, all, those of a host, or the
// hosts' leaders. Leaders meet inside operations of their hosts.
enum class FlightPart : std::uint8_t { kPair, kAll, kHost, kLeaders };
inline constexpr std::size_t kFlightParts = 4;

// One operation of one rank. Times are nanoseconds of CLOCK_MONOTONIC, which is one clock for all
// processes of a host.
struct FlightRecord {
  std::string group;  // its name; empty for the group of all ranks
  FlightPart part = FlightPart::kAll;
  Operation operation = Operation::kAllReduce;
  std::uint32_t number = 0;  // within that part of the group, from 1; but for pairs, the same on
                             // all ranks that take part
  std::string tensor;        // its name, or for a pair the other rank; empty when there is neither
  std::uint64_t bytes = 0;
  std::int64_t entered_ns = 0;
  std::int64_t left_ns = 0;  // 0: not finished

  bool operator==(const FlightRecord&) const = default;
};

// An operation that begins, as FlightRecord describes it.
struct FlightEntry {
  std::string_view group;
  FlightPart part = FlightPart::kAll;
  Operation operation = Operation::kAllReduce;
  std::uint32_t number = 0;
  std::string_view tensor;
  std::uint64_t bytes = 0;
  std::int64_t now_ns = 0;
};

// A ring buffer with the last operations of one rank, in memory that other processes map too, so
// that they can read it even when the rank hangs or has died. Names that are too long are cut off.
// Writing takes less than a microsecond and never waits.
//
// Any thread of the rank may write, and any process may read at the same time.
class FlightLog {
 public:
  static constexpr std::size_t kRecords = 64;
  static constexpr std::size_t kNameBytes = 64;   // of a tensor's name
  static constexpr std::size_t kGroupBytes = 24;  // of a group's name

  // The size of a log, a multiple of 64.
  static std::size_t Bytes();

  // `memory` is Bytes() long, aligned to 64, and zeroed before the rank writes; it must outlive
  // this object.
  explicit FlightLog(std::byte* memory) : ring_(reinterpret_cast<Ring*>(memory)) {}

  // The rank begins an operation. Returns a ticket for Leave().
  std::uint64_t Enter(const FlightEntry& entry);
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
