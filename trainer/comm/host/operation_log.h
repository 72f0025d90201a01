// The operations of a group of ranks.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/comm/host/shm_segment.h"
#include "trainer/comm/host/transport.h"
#include "worker/flight_log.h"

namespace muster::trainer {

enum class Operation : std::uint8_t {
  kAllReduce,
  kAllGather,
  kBroadcast,
  kReduceScatter,
  kSend,
  kReceive,
};

// "all-reduce", "all-gather", "broadcast", "reduce-scatter", "send", "receive".
const char* OperationName(Operation operation);

// How many bytes ranks exchange: counted, and predicted by formulas.

// Totals: of one rank for a group's operations, or of the whole process for DataParallel.
struct Traffic {
  std::int64_t steps = 0;          // training steps; 0 if not applicable
  std::int64_t formula_bytes = 0;  // bytes sent by the method, according to its formula
  // Bytes sent, or read from another rank's memory; nullopt if c10d sends, as it does not count.
  std::optional<std::int64_t> counted_bytes;

  // One of the two totals, per step.
  double PerStep(std::int64_t bytes) const {
    return steps == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(steps);
  }
  // The difference to `earlier`, a total of the same operations; `steps` as here.
  Traffic Since(const Traffic& earlier) const;
};

// 2(N-1)K: the bytes in and out of the place that holds the model, when one of N replicas lives
// there, and each of the others receives K bytes of parameters and returns as many bytes of
// gradients. DataParallel works like this, and so does a parameter server, where this is the
// server's bottleneck: Li et al., "Scaling Distributed Machine Learning with the Parameter Server",
// OSDI 2014.
std::int64_t CentralBytes(int replicas, std::int64_t bytes);

// 2(N-1)K/N: the bytes that each of N ranks sends to all-reduce K bytes with a reduce-scatter and
// an all-gather, in a ring or otherwise. No all-reduce sends less: Patarasuk and Yuan, "Bandwidth
// optimal all-reduce algorithms for clusters of workstations", J. Parallel Distrib. Comput. 69(2),
// 2009.
std::int64_t RingBytes(int ranks, std::int64_t bytes);

// (N-1)K: the bytes that each of N ranks sends when every rank gets the K bytes of every other.
std::int64_t GatherBytes(int ranks, std::int64_t bytes);

// N times the bytes that each of N ranks sends in an operation, which need not be a whole number.
// `bytes` is what a rank passes to the operation: K in the formulas above for an all-reduce and an
// all-gather. A reduce-scatter sends (N-1)K/N; a broadcast as much, as the mean of all ranks; a
// message K.
std::int64_t FormulaParts(Operation operation, int ranks, std::int64_t bytes);

// The purpose of an operation.
enum class Use : std::uint8_t {
  kGradients,
  kParameters,   // that change during training: averaged or gathered
  kActivations,  // and everything else a forward or backward pass exchanges
  kOther,        // everything outside of steps: losses, files, initial values
};
inline constexpr std::size_t kUses = 4;

// Counts the bytes one rank sends in a group's operations. Thread-safe.
class TrafficCount {
 public:
  explicit TrafficCount(int ranks) : ranks_(ranks) {}

  // An operation to which this rank has passed `bytes`. `counted` is what it has sent, nullopt if
  // unknown.
  void Add(Use use, Operation operation, std::int64_t bytes, std::optional<std::int64_t> counted);

  // The total for `use`. Its counted_bytes are nullopt if any operation's were; without any
  // operation, 0 or, unless `counts`, nullopt.
  Traffic Total(Use use, bool counts) const;

 private:
  struct Sums {
    std::atomic<std::int64_t> parts = 0;  // as in FormulaParts
    std::atomic<std::int64_t> counted = 0;
    std::atomic<std::int64_t> operations = 0;
    std::atomic<std::int64_t> uncounted = 0;  // operations
  };

  const int ranks_;
  std::array<Sums, kUses> sums_;
};

// Polls operations that do not report their end.

// The state of an operation.
enum class FlightState { kUnderWay, kDone, kFailed };

// Tracks operations that continue while their rank does something else, such as those of a GPU, and
// whose end only polling shows. A separate thread polls every 50 ms while there are any; it starts
// with the first operation. Thread-safe.
class FlightWatch {
 public:
  FlightWatch() = default;
  // Waits for the thread, which may be polling. Operations still in progress are dropped.
  ~FlightWatch();
  FlightWatch(const FlightWatch&) = delete;
  FlightWatch& operator=(const FlightWatch&) = delete;

  // From now on `ask` is called periodically, from any thread, until it returns kDone, after which
  // `on_done` is called once, or returns kFailed, or throws, which means the same. Both are kept
  // until then. Returns at once.
  void Add(std::function<FlightState()> ask, std::function<void()> on_done);

  // Polls all operations now. Gives up after a second if another thread is stuck polling, so that
  // explaining a hang does not hang.
  void AskAll();

 private:
  struct Watched {
    std::function<FlightState()> ask;
    std::function<void()> on_done;
  };
  void Run();

  std::timed_mutex asking_;       // held while operations are polled
  std::vector<Watched> watched_;  // guarded by asking_

  std::mutex mutex_;  // for the members below; never held for long
  std::condition_variable changed_;
  std::vector<Watched> added_;  // since the last poll
  std::size_t under_way_ = 0;   // in both
  bool ending_ = false;
  std::thread thread_;
};

// Records the operations of this rank, and reads those of the other ranks on its host.

using worker::FlightPart;

// An operation that has begun, to be passed to Leave().
struct FlightTicket {
  std::uint64_t ours = 0;       // in the log shared by the ranks of the host
  std::uint64_t launchers = 0;  // in the launcher's log
};

// Writes one rank's log, and reads the logs of its host, so that a rank whose operation has failed
// can report where the others are. The same is written to the launcher's log, if there is one, for
// when no rank can report anything. Thread-safe, except for NameBuffers().
class FlightRecorder {
 public:
  // The size of a segment for the logs of `ranks` ranks.
  static std::size_t SegmentBytes(std::size_t ranks) { return ranks * worker::kFlightLogBytes; }

  // For `rank` of the world. `segment` is shared by the ranks of this host, given by `layout`;
  // nullopt if they share nothing: then other ranks' operations are unknown. `launchers` is nullopt
  // if the launcher reads no log. At least one of the two must be set.
  FlightRecorder(std::optional<ShmSegment> segment, const HostLayout& layout, int rank,
                 std::optional<worker::FlightMemory> launchers);
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  // Names memory by its address, for operations that begin later. Call it while no operation is
  // beginning.
  void NameBuffers(std::unordered_map<const void*, std::string> names) {
    names_ = std::move(names);
  }

  // The name of the memory at `data`; empty if it has none.
  std::string_view NameOf(const void* data) const;

  // This rank begins an operation. Returns a ticket for Leave().
  FlightTicket Enter(const worker::FlightEntry& entry);
  // The operation has succeeded.
  void Leave(const FlightTicket& ticket);
  // The operation continues by itself, and has succeeded when `ask` returns kDone; see FlightWatch.
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
  const std::vector<int> ranks_;  // on this host
  std::optional<worker::FlightLog> ours_;
  std::optional<worker::FlightLog> launchers_;
  std::unordered_map<const void*, std::string> names_;
  FlightWatch watch_;  // destroyed first
};

// Records the operations of one group, and numbers them. Thread-safe, as FlightRecorder.
class GroupFlights {
 public:
  // `recorder` must outlive this object; nothing is recorded if it is null. `group` is a name for
  // messages, empty for the group of all ranks.
  GroupFlights(FlightRecorder* recorder, std::string group)
      : recorder_(recorder), group_(std::move(group)) {}

  bool recorded() const { return recorder_ != nullptr; }

  // This rank begins an operation on `bytes` at `data` with the ranks of `part`; all of them must
  // begin it in the same order. Returns a ticket for Leave().
  FlightTicket Enter(FlightPart part, Operation operation, const void* data, std::size_t bytes);
  // This rank begins to send or receive `bytes`; `other` names the rank at the other end.
  FlightTicket EnterPair(Operation operation, std::string_view other, std::size_t bytes);
  // The operation has succeeded.
  void Leave(const FlightTicket& ticket);
  // Polls for its end; see FlightRecorder::Watch.
  void Watch(const FlightTicket& ticket, std::function<FlightState()> ask);

 private:
  FlightTicket Begin(FlightPart part, Operation operation, std::string_view tensor,
                     std::size_t bytes);

  FlightRecorder* const recorder_;
  const std::string group_;
  std::array<std::atomic<std::uint32_t>, worker::kFlightParts> numbers_{};
};

}  // namespace muster::trainer
