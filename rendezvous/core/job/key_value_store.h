// The keys and values of one job, as the front of the daemon (proto/store.proto) and the workers'
// own store (c10d's TCPStore protocol) offer them.
//
// Keys and values are bytes. A key exists from the call that first writes it until Delete; its
// value may be empty. Besides its value a key may have a queue, which exists while it is not empty.
// The results are those of c10d's TCPStore wherever that protocol has the operation; where its
// versions differ, the right one is chosen: a wait is woken exactly when a key comes into
// existence.
//
// Limits keep one job from exhausting the daemon's memory, and a budget does the same for all jobs
// together. A call that would exceed one changes nothing and returns ResourceExhausted with a
// sentence that names it: "set 'k': the value has 9 bytes, the limit is 8".
//
// Deterministic, without I/O, clock or threads: it is called on its owner's thread only. There are
// no callbacks. Waits that end are put into an outbox: after a mutating method or Tick, the caller
// must call TakeCompleted and answer them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "base/durations.h"
#include "rendezvous/core/job/key_waits.h"
#include "rendezvous/core/values/key_map.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/quotas.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

struct KeyValueLimits {
  std::size_t key_bytes = limits::kKeyBytes.most;
  std::size_t value_bytes = limits::kValueBytes.most;
  // Keys with a value and keys with a queue, together.
  std::size_t keys = limits::kKeysOfJob.most;
  // Keys, values and queues together (KeyQueues::bytes).
  std::size_t total_bytes = limits::kStoreBytesOfJob.most;
  // Pending waits, and their memory together (WaitList::bytes, BarrierList::bytes,
  // MeetingList::bytes).
  std::size_t waits = limits::kWaitsOfJob.most;
  std::size_t wait_bytes = limits::kWaitBytesOfJob.most;
};

// A key as shown in messages: in single quotes, escaped and shortened, since it may hold any bytes.
std::string ShownKey(std::string_view key);

class KeyValueStore {
 public:
  // What a key takes of the budget in addition to its own bytes and its value's: two strings and
  // their place in a table.
  static constexpr std::size_t kBytesBesideKey = 96;

  // `budget`, which must outlive the store, is shared by all stores; null: only this store's limits
  // apply.
  explicit KeyValueStore(const KeyValueLimits& limits = {}, ByteBudget* budget = nullptr)
      : limits_(limits), share_(budget) {}
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;

  // The value, valid until the next mutating call begins; null when the key does not exist.
  const std::string* Get(std::string_view key) const {
    return const_cast<KeyValueStore*>(this)->Find(key);
  }

  // Writes a value, creating the key if need be.
  absl::Status Set(std::string_view key, std::string_view value);

  // Adds to the number whose decimal text is the value and returns the sum. A missing key counts as
  // 0 and is created, even by a delta of 0. Text is read as c10d reads it (std::stoll: leading
  // blanks, a sign, then digits up to the first other byte). FailedPrecondition when the text is
  // not a number; OutOfRange when the number does not fit in 64 bits, or the sum if kRefused.
  enum class Overflow {
    kWraps,    // as with every c10d server, whose protocol has no error for it
    kRefused,  // nothing is added
  };
  absl::StatusOr<std::int64_t> Add(std::string_view key, std::int64_t delta,
                                   Overflow overflow = Overflow::kWraps);

  struct CompareSetOutcome {
    bool stored = false;
    // What c10d replies: `desired` if it was stored; else the current value; else, when the key is
    // missing and `expected` is not empty, `expected`.
    std::string value;
  };
  // Writes `desired` if the value equals `expected`, or if the key is missing and `expected` is
  // empty.
  absl::StatusOr<CompareSetOutcome> CompareSet(std::string_view key, std::string_view expected,
                                               std::string_view desired);

  // Extends the value; a missing key counts as empty and is created.
  absl::Status Append(std::string_view key, std::string_view suffix);

  // Whether there was such a value to remove; a queue remains. Wakes no wait, and does not undo a
  // wake-up.
  bool Delete(std::string_view key);

  // Whether all the keys exist or have a queue; true for an empty list.
  bool Check(std::span<const std::string_view> keys) const;

  // Does not count queues.
  std::size_t NumKeys() const { return values_.size(); }

  // The keys that have a value, in the order of their bytes. Valid as long as the result of Get.
  std::vector<std::string_view> Keys() const;

  // Keys, values and queues together, as `total_bytes` counts them.
  std::size_t TotalBytes() const { return bytes_ + queues_.bytes(); }

  // As Get, for each key in order.
  std::vector<const std::string*> MultiGet(std::span<const std::string_view> keys) const;

  // Sets in order (the later of two entries with the same key wins), all of them or none.
  using Entry = std::pair<std::string_view, std::string_view>;
  absl::Status MultiSet(std::span<const Entry> entries);

  // Appends a value to the key's queue. It wakes at most one wait (see WaitList), as a hint that
  // there is something to pop. The first to pop gets it.
  absl::Status Push(std::string_view key, std::string_view value);

  struct PopOutcome {
    std::size_t length = 0;  // of the queue before; 0: it was empty
    std::string value;
  };
  // Takes the oldest value out of the key's queue.
  PopOutcome Pop(std::string_view key);

  std::size_t QueueLength(std::string_view key) const { return queues_.Length(key); }

  // Counts one arrival at the key, like Add of 1, and waits until `world_size` have been counted.
  // Returns nullopt if that number is reached; then all other waits at this barrier are woken
  // together. Otherwise returns the number of the wait that is now pending; it is also woken when
  // another call brings the count to `world_size`. A cancelled wait remains counted, and a barrier
  // once reached remains open, both as in c10d. Errors as for Add and Wait, and then nothing has
  // been counted.
  absl::StatusOr<std::optional<WaiterId>> Barrier(std::string_view key, std::int64_t world_size);

  // Joins a meeting (see MeetingList); its name is not a key and is visible only to those that
  // join. Returns nullopt if the meeting is now complete; then the others are woken. Otherwise
  // returns the number of the pending wait; an earlier wait of the same caller there ends.
  // InvalidArgument when the count is 0; FailedPrecondition when those waiting there expect another
  // count; ResourceExhausted as for Wait. On error nothing has changed.
  absl::StatusOr<std::optional<WaiterId>> Meet(const Arrival& arrival);

  // Waits until each key has existed at some time from now on (see WaitList); a key with a queue
  // exists. Returns nullopt when all exist already, else the number of the wait that is now
  // pending. Without a deadline it is pending until it is woken or cancelled. A deadline that has
  // already passed takes effect at the next Tick. ResourceExhausted when there would be too many
  // pending waits or they would take too much memory, or when a key is too long to exist.
  absl::StatusOr<std::optional<WaiterId>> Wait(std::span<const std::string_view> keys,
                                               std::optional<TimePoint> deadline);

  // Forgets a wait. False if it is not pending; one that is already in the outbox remains there.
  bool CancelWait(WaiterId waiter) {
    return waits_.Cancel(waiter) || barriers_.Cancel(waiter) || meetings_.Cancel(waiter);
  }

  // Times out the waits whose deadline is at or before `now`. To be called at NextDeadline() or
  // later.
  void Tick(TimePoint now) {
    waits_.Tick(now, completed_);
    meetings_.Tick(now, completed_);
  }
  std::optional<TimePoint> NextDeadline() const {
    return base::Earliest(waits_.NextDeadline(), meetings_.NextDeadline());
  }

  // Empties the outbox: the waits that ended since the last call, in that order.
  std::vector<CompletedWait> TakeCompleted() { return std::exchange(completed_, {}); }

  // Starts tracking which values are written or deleted, for a journal.
  void TrackChanges() { tracks_ = true; }
  // The keys whose values have changed since the last call, each once. Queues and waits are not
  // tracked.
  std::vector<std::string> TakeChangedKeys();

  std::size_t NumWaits() const { return waits_.size() + barriers_.size() + meetings_.size(); }

 private:
  std::string* Find(std::string_view key);
  bool Exists(std::string_view key) const { return values_.contains(key) || queues_.Length(key); }

  // Ok, or which limit a write of this entry would exceed: alone, and in total.
  absl::Status CheckSizes(absl::string_view attempt, std::string_view key,
                          std::size_t value_bytes) const;
  absl::Status CheckTotals(absl::string_view attempt, std::string_view key, std::size_t keys,
                           std::size_t bytes) const;
  // `old_value` is the key's current value, or null.
  absl::Status CheckWrite(absl::string_view attempt, std::string_view key,
                          const std::string* old_value, std::size_t value_bytes) const;
  absl::Status CheckWaits(std::string_view key, std::size_t bytes) const;
  // Updates the budget. Call it after each change.
  void TakeShare();
  // Writes without checking limits, and wakes waiters.
  void Write(std::string_view key, std::string* old_value, std::string_view value);
  void Track(std::string_view key) {
    if (tracks_ && !changed_.contains(key)) changed_.emplace(key);
  }
  // Releases those at a barrier whose size a write has reached.
  void Count(std::string_view key, std::string_view value);

  const KeyValueLimits limits_;
  ByteBudget::Share share_;

  KeyMap<std::string> values_;
  std::size_t bytes_ = 0;  // of values_
  KeyQueues queues_;
  WaitList waits_;
  BarrierList barriers_;
  MeetingList meetings_;
  WaiterId last_waiter_ = 0;  // over all three lists
  std::vector<CompletedWait> completed_;
  bool tracks_ = false;
  std::set<std::string, std::less<>> changed_;
};

// Numbers as c10d's servers keep them: as the decimal text of a value.

// Reads a number by the rules of std::stoll, which every c10d server follows: leading blanks, a
// sign and the digits up to the first other byte, whatever follows it. FailedPrecondition when
// there is none, OutOfRange when it does not fit; the message ends a sentence: "the value is not a
// number".
absl::StatusOr<std::int64_t> ParseStoredNumber(std::string_view text);

// The sum, which wraps around if it does not fit, as with every c10d server.
std::int64_t AddStoredNumbers(std::int64_t a, std::int64_t b);

}  // namespace muster::rendezvous
