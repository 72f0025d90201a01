// Records the operations of this rank, and reads those of the other ranks on its host.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
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

  // The name of the memory at `data`, empty when it has none.
  std::string_view NameOf(const void* data) const;

  // This rank begins an operation. Returns a ticket for Leave().
  std::uint64_t Enter(const FlightEntry& entry) { return mine_.Enter(entry); }
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

// Records the operations of one group, and numbers them. Thread-safe, as FlightRecorder.
class GroupFlights {
 public:
  // `recorder` must outlive this object; nothing is recorded when it is null. `group` is a name for
  // messages, empty for the group of all ranks.
  GroupFlights(FlightRecorder* recorder, std::string group)
      : recorder_(recorder), group_(std::move(group)) {}

  bool recorded() const { return recorder_ != nullptr; }

  // This rank begins an operation on `bytes` at `data`, in which the ranks of `part` take part; all
  // of them must begin it in the same order. Returns a ticket for Leave().
  std::uint64_t Enter(FlightPart part, Operation operation, const void* data, std::size_t bytes);
  // This rank begins to send or receive `bytes`; `other` says to or from which rank.
  std::uint64_t EnterPair(Operation operation, std::string_view other, std::size_t bytes);
  // The operation has succeeded.
  void Leave(std::uint64_t ticket);

 private:
  std::uint64_t Begin(FlightPart part, Operation operation, std::string_view tensor,
                      std::size_t bytes);

  FlightRecorder* const recorder_;
  const std::string group_;
  std::array<std::atomic<std::uint32_t>, kFlightParts> numbers_{};
};

}  // namespace muster::trainer
