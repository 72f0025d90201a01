// Records the operations of this rank, and reads those of the other ranks on its host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/comm/flight_log.h"
#include "trainer/comm/host_layout.h"
#include "trainer/comm/shm_segment.h"

namespace muster::trainer {

// Writes one rank's log, and reads the logs of its host, so that a rank whose operation has failed
// can say where the others are. Thread-safe, except for NameBuffers().
class FlightRecorder {
 public:
  // The size of a segment for the logs of `ranks` ranks.
  static std::size_t SegmentBytes(std::size_t ranks) { return ranks * FlightLog::Bytes(); }

  // `segment` is shared by the ranks of this host.
  FlightRecorder(ShmSegment segment, const HostLayout& layout);
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  // Names memory by its address, for operations that begin later. Call it while no operation is
  // beginning.
  void NameBuffers(std::unordered_map<const void*, std::string> names) {
    names_ = std::move(names);
  }

  // This rank begins an operation on `bytes` at `data`. Returns a ticket for Leave().
  std::uint64_t Enter(FlightGroup group, Operation operation, const void* data, std::size_t bytes);
  // The operation has succeeded.
  void Leave(std::uint64_t ticket);

  // Where each rank of this host is; see ExplainFlights.
  std::string Explain() const;

 private:
  FlightLog LogOf(std::size_t place) const;

  const ShmSegment segment_;
  const std::vector<int> ranks_;
  FlightLog mine_;
  std::unordered_map<const void*, std::string> names_;
};

}  // namespace muster::trainer
