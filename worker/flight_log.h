// The log of a worker's last operations: its records, and the sides of its worker and launcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "base/unique_fd.h"
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

// One rank's log.
struct RankFlight {
  int rank = 0;
  std::vector<FlightRecord> records;  // oldest first
  bool kept = true;                   // false: it opened no log, so nothing is known
};

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

// A worker's side of its flight log.

// The mapped memory of a worker's flight log, provided by the launcher. Move-only; the destructor
// unmaps it.
class FlightMemory {
 public:
  // Maps the log at `offset` of the file `path`, the values of MUSTER_FLIGHT_OFFSET and
  // MUSTER_FLIGHT_LOG. Marks it as in use and clears it: a wrapper may have used it before it
  // started this program. Writes nothing to a file without a log. kUnavailable, with one sentence,
  // if there is no writable log: for example, a worker in a container of its own does not see its
  // launcher's processes.
  static absl::StatusOr<FlightMemory> Open(const std::string& path, std::size_t offset);

  FlightMemory(FlightMemory&& other) noexcept;
  FlightMemory& operator=(FlightMemory&& other) noexcept;
  ~FlightMemory();

  // For a FlightLog.
  std::byte* data() const { return data_; }

 private:
  explicit FlightMemory(std::byte* data) : data_(data) {}

  std::byte* data_;
};

// The launcher's side of its workers' flight logs.

// Memory for a flight log of each worker of a node. It has no name: workers open it through the
// launcher's descriptor in /proc, so nothing is left behind however launcher and workers end, and
// the launcher can read it after the workers have died. Its size is sealed, and a page takes memory
// only once it is written.
//
// Workers may write anything: the contents are read as bytes and not trusted.
class FlightFile {
 public:
  // Creates an empty log for each of `workers`. An error says why that is not possible.
  static absl::StatusOr<FlightFile> Create(int workers);

  // The value of MUSTER_FLIGHT_LOG, valid while this object exists in this process.
  const std::string& path() const { return path_; }
  // The value of MUSTER_FLIGHT_OFFSET for the worker with this index.
  std::size_t OffsetOf(int worker) const { return static_cast<std::size_t>(worker) * stride_; }

  // The operations of each worker; the first worker has rank `first_rank`.
  std::vector<RankFlight> Read(int first_rank) const;

 private:
  FlightFile(base::UniqueFd file, int workers, std::size_t stride);

  base::UniqueFd file_;
  int workers_;
  std::size_t stride_;  // distance between logs, in whole pages
  std::string path_;
};

// The operations in the log at `offset` of an open file; nullopt if no worker keeps a readable log
// there. Does not block or move the file's position. Leaves out records that change during the
// read, and those of an earlier program in the same log.
std::optional<std::vector<FlightRecord>> ReadFlightLog(int file, std::size_t offset);

}  // namespace muster::worker
