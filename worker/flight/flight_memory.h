// A worker's end of its flight log.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace muster::worker {

// The memory that a launcher gave for a worker's flight log, mapped. Move-only; the destructor
// unmaps it.
class FlightMemory {
 public:
  // Maps the log at `offset` of the file `path`, which MUSTER_FLIGHT_OFFSET and MUSTER_FLIGHT_LOG
  // say, says in it that it is kept, and empties it: whoever has had it before in the same rank,
  // until a wrapper has started this program in its place, is no longer there. Nothing is written
  // to a file that has no log. kUnavailable with one sentence when there is none that can be
  // written: in a container of its own, for instance, a worker does not see its launcher's
  // processes.
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

}  // namespace muster::worker
