// The calls of the stores' clients, from their arrival until their answers may be told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rendezvous/core/coordinator.h"
#include "rendezvous/core/delivery.h"
#include "rendezvous/core/key_value_store.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

struct StoreCall {
  // What is done with the job's store, at once or when the wait is over. It may write its result
  // where the caller wants it; its status is the answer.
  using Body = std::function<absl::Status(KeyValueStore& store)>;
  // All of these keys have to exist. Only read during the call.
  struct Wait {
    std::vector<std::string_view> keys;
    std::optional<TimePoint> deadline;
  };

  std::string run_id;
  Body body;
  // It changes the store: refused at once while the disk is full, and nothing is changed.
  bool writes = false;
  // What comes before the body: one of these, or neither.
  std::optional<Wait> wait;
  std::optional<Arrival> arrival;  // as many have to be at this barrier; see KeyValueStore::Meet
};

// A call is in one of these states, and leaves by the first that happens:
//
//   waiting --its keys exist, everybody is at its barrier, its deadline has passed, its caller has
//   called again, or the job is gone--> answered
//   answered (in the Delivery, until what it says is durable) --told--> gone
//   answered --the disk is full, and it did not come to wait--> told so (Delivery)
//   either --Cancel--> gone: its body is not called (again), and what it would have been told is
//   for nobody
//
// Cancelling changes nothing but who waits, and so who counts at a barrier. Pure; not thread-safe.
// `coordinator` and `delivery` must outlive it.
class StoreCalls {
 public:
  // Calls that wait may name `most_waiting_bytes` together, with 64 beside each key.
  StoreCalls(Coordinator& coordinator, Delivery& delivery,
             std::size_t most_waiting_bytes = limits::kWaitingBytes.most)
      : most_waiting_bytes_(most_waiting_bytes), coordinator_(coordinator), delivery_(delivery) {}
  StoreCalls(const StoreCalls&) = delete;
  StoreCalls& operator=(const StoreCalls&) = delete;

  // A new call. Its answer, and those of the calls that it wakes, are put into the Delivery.
  void Call(CallId id, const StoreCall& call);
  // Its client is gone. Once this returns, nothing that the call named is touched.
  void Cancel(CallId id);

  // The job and its store no longer exist: the job's calls are answered with Aborted.
  void DropStore(const std::string& run_id);

  // Times out the waits whose deadline has come.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  // How many calls wait, over all jobs.
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    std::string run_id;
    WaiterId waiter = 0;
    StoreCall::Body body;
    std::size_t bytes = 0;  // of what it names
    // Of a call that came to a barrier.
    std::string barrier;
    std::uint64_t count = 0;
  };

  // The store, or why there is none for this call.
  absl::StatusOr<KeyValueStore*> Find(const std::string& run_id) const;
  // Reports what has changed, and answers the calls whose wait has ended. To be called after each
  // call of a store.
  void Settle(const std::string& run_id, KeyValueStore& store);
  // What a call is answered whose wait has ended.
  static absl::Status Outcome(const Waiting& waiting, const CompletedWait& completed,
                              KeyValueStore& store);
  void Answer(CallId id, absl::Status status, bool patient);

  // What a call that waits takes of the limit on such bytes.
  static std::size_t BytesOf(const StoreCall& call);
  void Forget(const Waiting& waiting) { waiting_bytes_ -= waiting.bytes; }

  const std::size_t most_waiting_bytes_;
  std::size_t waiting_bytes_ = 0;
  Coordinator& coordinator_;
  Delivery& delivery_;
  std::map<CallId, Waiting> waiting_;
  // By run id and number of the wait; no job without calls.
  std::map<std::string, std::map<WaiterId, CallId>, std::less<>> by_job_;
};

}  // namespace muster::rendezvous
