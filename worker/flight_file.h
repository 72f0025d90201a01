// A worker's side of its flight log.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/unique_fd.h"
#include "worker/flight_log.h"
#include "worker/flight_report.h"

namespace muster::worker {

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
