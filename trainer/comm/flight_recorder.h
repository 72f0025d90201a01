// Records the operations of this rank, and reads those of the other ranks on its host.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/comm/flight_watch.h"
#include "trainer/comm/host_layout.h"
#include "trainer/comm/operation.h"
#include "trainer/comm/shm_segment.h"
#include "worker/flight/flight_log.h"
#include "worker/flight/flight_memory.h"

namespace muster::trainer {

using worker::FlightPart;

// An operation that has begun, for Leave().
struct FlightTicket {
  std::uint64_t ours = 0;       // in the log that the ranks of the host share
  std::uint64_t launchers = 0;  // in the launcher's
};

// Writes one rank's log, and reads the logs of its host, so that a rank whose operation has failed
// can say where the others are. The same goes into the launcher's log, if it has given one: it can
// say so even when no rank can. Thread-safe, except for NameBuffers().
class FlightRecorder {
 public:
  // The size of a segment for the logs of `ranks` ranks.
  static std::size_t SegmentBytes(std::size_t ranks) { return ranks * worker::kFlightLogBytes; }

  // For `rank` of the world. `segment` is shared by the ranks of this host, of which `layout`
  // tells; nullopt when they share nothing: then no other rank can be told of. `launchers` is
  // nullopt when the launcher reads no log. One of the two is there.
  FlightRecorder(std::optional<ShmSegment> segment, const HostLayout& layout, int rank,
                 std::optional<worker::FlightMemory> launchers);
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
  FlightTicket Enter(const worker::FlightEntry& entry);
  // The operation has succeeded.
  void Leave(const FlightTicket& ticket);
  // The operation goes on by itself, and has succeeded when `ask` says kDone; see FlightWatch.
  void Watch(const FlightTicket& ticket, std::function<FlightState()> ask) {
    watch_.Add(std::move(ask), [this, ticket] { Leave(ticket); });
  }

  // Where each rank of this host is; see worker::ExplainFlights.
  std::string Explain();

 private:
  worker::FlightLog LogOf(std::size_t place) const;

  const std::optional<ShmSegment> segment_;
  const std::optional<worker::FlightMemory> launchers_memory_;
  const int rank_;
  const std::vector<int> ranks_;  // of this host
  std::optional<worker::FlightLog> ours_;
  std::optional<worker::FlightLog> launchers_;
  std::unordered_map<const void*, std::string> names_;
  FlightWatch watch_;  // ends first
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
  FlightTicket Enter(FlightPart part, Operation operation, const void* data, std::size_t bytes);
  // This rank begins to send or receive `bytes`; `other` says to or from which rank.
  FlightTicket EnterPair(Operation operation, std::string_view other, std::size_t bytes);
  // The operation has succeeded.
  void Leave(const FlightTicket& ticket);
  // Asks whether it has; see FlightRecorder::Watch.
  void Watch(const FlightTicket& ticket, std::function<FlightState()> ask);

 private:
  FlightTicket Begin(FlightPart part, Operation operation, std::string_view tensor,
                     std::size_t bytes);

  FlightRecorder* const recorder_;
  const std::string group_;
  std::array<std::atomic<std::uint32_t>, worker::kFlightParts> numbers_{};
};

}  // namespace muster::trainer
