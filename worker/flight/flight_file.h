// The launcher's end of its workers' flight logs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "worker/flight/flight_place.h"
#include "worker/flight/flight_record.h"

namespace muster::worker {

// Memory in which each worker of a node can leave a flight log. It has no name: workers open it
// through the launcher's descriptor in /proc, so that nothing is left behind, in whatever way
// launcher and workers end; and the launcher can read it when the workers are dead. Its size cannot
// be changed, and a page costs memory once something is written there.
//
// Workers may write whatever they like: it is read as bytes, and nothing in it is trusted.
class FlightFile {
 public:
  // With an empty log for each of `workers`. Errors say why there is no such memory.
  static absl::StatusOr<FlightFile> Create(int workers);

  // What MUSTER_FLIGHT_LOG is, as long as this object exists in this process.
  const std::string& path() const { return path_; }
  // What MUSTER_FLIGHT_OFFSET is for the worker with this index.
  std::size_t OffsetOf(int worker) const { return static_cast<std::size_t>(worker) * stride_; }

  // The operations of each worker, of which the first has `first_rank`.
  std::vector<RankFlight> Read(int first_rank) const;

 private:
  FlightFile(base::UniqueFd file, int workers, std::size_t stride);

  base::UniqueFd file_;
  int workers_;
  std::size_t stride_;  // from one log to the next, in whole pages
  std::string path_;
};

// The operations in the log at `offset` of an open file; nullopt when no worker keeps a log there
// that can be read, whatever is there instead. Does not wait for anything, and does not move the
// file's position. Records that change while they are read are left out, and so are those of a
// program that has had the log before the one that has it now.
std::optional<std::vector<FlightRecord>> ReadFlightLog(int file, std::size_t offset);

}  // namespace muster::worker
