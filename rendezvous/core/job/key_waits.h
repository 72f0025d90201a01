// Waits for keys to come into existence.
//
// A wait pends on the keys that were missing when it was added. Each of them is a latch: once it
// has been created it counts as seen, even if it is deleted again (as in c10d's waits). The wait
// ends when all are seen, when its deadline passes or when it is cancelled, whichever comes first,
// and never twice.
//
// A value pushed into a queue is for one consumer, so a push completes at most one wait; see
// KeyPushed.
//
// Waits are indexed by missing key, so creating a key costs time only for the waits on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"

#include "rendezvous/core/values/key_map.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// One pending wait. Numbered from 1 in order of arrival; never reused.
using WaiterId = std::uint64_t;

enum class WaitEnd {
  kReady,     // every key it named has existed, or everyone has arrived
  kTimedOut,  // its deadline passed first
  kReplaced,  // at a meeting: the same caller came again, and waits there now
};

struct CompletedWait {
  WaiterId waiter = 0;
  WaitEnd end = WaitEnd::kReady;
  // Timed out at a meeting: the most callers present at once while it waited, itself included.
  std::uint64_t reached = 0;

  bool operator==(const CompletedWait&) const = default;
};

// Part of a KeyValueStore, which owns it, numbers the waits and tells it of every key that comes
// into existence. Completed waits are added to `ended` in order of completion.
class WaitList {
 public:
  // Adds a wait, with a number greater than any before, for keys that do not exist: at least one;
  // duplicates are fine.
  void Add(WaiterId waiter, std::span<const std::string_view> missing,
           std::optional<TimePoint> deadline);

  // Ends a wait without completing it. False if it is not pending (any more).
  bool Cancel(WaiterId waiter);

  // `key` came into existence: completes the waits for which only it was missing, in order of
  // arrival.
  void KeyCreated(std::string_view key, std::vector<CompletedWait>& ended);

  // A value was pushed into the queue `key`: completes the first wait for which only it was
  // missing. If there is none, the value stays available, and all waits on the key have seen it.
  void KeyPushed(std::string_view key, std::vector<CompletedWait>& ended);

  // Times out the waits whose deadline is at or before `now`, earliest deadline first.
  void Tick(TimePoint now, std::vector<CompletedWait>& ended);

  // The earliest deadline of a pending wait.
  std::optional<TimePoint> NextDeadline() const;

  // Number of pending waits.
  std::size_t size() const { return waits_.size(); }

  // The memory of the pending waits: each missing key's bytes once, and kBytesPerPair for each wait
  // on it.
  std::size_t bytes() const { return bytes_; }
  static constexpr std::size_t kBytesPerPair = 16;

 private:
  // Stands for a missing key in the waits on it. Never reused, so a wait may keep the ids of keys
  // that were created meanwhile.
  using KeyId = std::uint64_t;

  struct MissingKey {
    std::string key;
    absl::btree_set<WaiterId> waiters;
  };

  struct PendingWait {
    std::vector<KeyId> keys;  // all keys it was added with
    std::size_t missing = 0;  // how many of them have not been seen
    std::optional<TimePoint> deadline;
  };

  // Takes a wait out of every index.
  void Remove(absl::flat_hash_map<WaiterId, PendingWait>::iterator wait);

  absl::flat_hash_map<WaiterId, PendingWait> waits_;
  KeyMap<KeyId> key_ids_;
  absl::flat_hash_map<KeyId, MissingKey> missing_keys_;
  absl::btree_set<std::pair<TimePoint, WaiterId>> deadlines_;
  KeyId last_key_ = 0;
  std::size_t bytes_ = 0;
};

// Waits at a barrier, until a key's count has reached the size they named.
//
// The count itself is a value in the KeyValueStore, so any client may read or change it; this list
// only knows which waits are parked at which key, and for what size.

// Part of a KeyValueStore, which owns it, numbers the waits and tells it of every count.
class BarrierList {
 public:
  // Parks a wait, with a unique number, until the count of `key` is `world_size`.
  void Add(WaiterId waiter, std::string_view key, std::int64_t world_size);

  // Ends a wait without completing it. False if it is not pending (any more).
  bool Cancel(WaiterId waiter);

  // Whether any wait is parked at `key`.
  bool Contains(std::string_view key) const { return barriers_.contains(key); }

  // The count of `key` is now `count`: completes the waits for that size or less, the smallest size
  // first, then in order of arrival. Adds them to `ended`.
  void Counted(std::string_view key, std::int64_t count, std::vector<CompletedWait>& ended);

  // Completes every wait at `key`, in the same order.
  void Release(std::string_view key, std::vector<CompletedWait>& ended) {
    Counted(key, std::numeric_limits<std::int64_t>::max(), ended);
  }

  // Number of pending waits.
  std::size_t size() const { return places_.size(); }

  // The memory of the pending waits: for each its key's bytes and kBytesPerWait.
  std::size_t bytes() const { return bytes_; }
  static constexpr std::size_t kBytesPerWait = 64;

 private:
  // By size, so that the cost of an arrival that releases no wait does not depend on how many are
  // parked.
  using Parked = absl::btree_set<std::pair<std::int64_t, WaiterId>>;

  struct Place {
    std::string key;
    std::int64_t world_size = 0;
  };

  using Places = absl::flat_hash_map<WaiterId, Place>;

  void Forget(Places::iterator place);

  KeyMap<Parked> barriers_;  // none of them empty
  Places places_;
  std::size_t bytes_ = 0;
};

// Waits until enough callers have arrived: what proto/store.proto calls a barrier.
//
// A meeting exists while a caller waits there. The first to come sets its count, which all others
// must name, too; the last one needed releases the others, and then the next meeting of that name
// may begin. A caller that stops waiting, for whatever reason, no longer counts.
//
// Unrelated to c10d's barrier (BarrierList), which counts in a key and stays open once reached.

// A caller arriving at a meeting. The views are only read during the call they are passed to.
struct Arrival {
  std::string_view name;  // of the meeting, any bytes
  std::uint64_t count = 0;
  // Distinguishes a caller that comes again from another one; empty: they cannot be told apart.
  std::string_view caller;
  // Until when it waits; nullopt: no deadline.
  std::optional<TimePoint> deadline;
};

// Part of a KeyValueStore, which owns it and numbers the waits. Waits that end are added to `ended`
// in that order.
class MeetingList {
 public:
  // The count expected by those waiting at the meeting; 0 when there is no meeting.
  std::uint64_t CountOf(std::string_view name) const;

  // If the same caller already waits there, ends that wait as kReplaced and returns true. Add
  // follows, so the number of callers stays the same.
  bool Replace(const Arrival& arrival, std::vector<CompletedWait>& ended);

  // If this arrival, which names their count and is not one of them, completes the meeting:
  // completes their waits in order of arrival and returns true.
  bool Completes(const Arrival& arrival, std::vector<CompletedWait>& ended);

  // Adds a wait, with a number greater than any before, for an arrival that completes nothing.
  void Add(WaiterId waiter, const Arrival& arrival);

  // Ends a wait without completing it. False if it is not pending (any more).
  bool Cancel(WaiterId waiter);

  // Times out the waits whose deadline is at or before `now`, earliest deadline first. Each reports
  // the most callers present at once while it waited: of several that give up one after the other,
  // none reports less because another was a moment faster.
  void Tick(TimePoint now, std::vector<CompletedWait>& ended);

  // The earliest deadline of a pending wait.
  std::optional<TimePoint> NextDeadline() const;

  // Number of pending waits.
  std::size_t size() const { return waits_.size(); }

  // The memory of the pending waits: the sum of their Bytes.
  std::size_t bytes() const { return bytes_; }
  static std::size_t Bytes(const Arrival& arrival) {
    return arrival.name.size() + arrival.caller.size() + kBytesPerWait;
  }
  static constexpr std::size_t kBytesPerWait = 128;

 private:
  struct Meeting {
    std::uint64_t count = 0;
    std::set<WaiterId> waiters;
    KeyMap<WaiterId> callers;  // those with a caller id
    // By waiter: the most callers present at once since it came. Each is less than the one before
    // it, and also holds for the waiters up to the next.
    std::map<WaiterId, std::uint64_t> most;
  };

  struct PendingWait {
    std::string name;
    std::string caller;
    std::optional<TimePoint> deadline;
  };

  using Waits = absl::flat_hash_map<WaiterId, PendingWait>;

  // Removes a wait from everything but its meeting.
  void Forget(Waits::iterator wait);
  // Removes a wait from everything. A meeting without waits is over.
  void Remove(Waits::iterator wait);

  KeyMap<Meeting> meetings_;
  Waits waits_;
  std::set<std::pair<TimePoint, WaiterId>> deadlines_;
  std::size_t bytes_ = 0;
};

// First-in-first-out queues of values, one for each key that has been pushed to.
//
// A queue exists while it holds a value, and is removed with the last one. It is independent of the
// value that its key may have in the KeyValueStore.

// Part of a KeyValueStore, which owns it and enforces its limits.
class KeyQueues {
 public:
  void Push(std::string_view key, std::string_view value);

  // Takes out the oldest value; nullopt when the queue is empty.
  std::optional<std::string> Pop(std::string_view key);

  // Number of values in the queue; 0 for one that was never pushed to.
  std::size_t Length(std::string_view key) const;

  // Number of queues that are not empty.
  std::size_t size() const { return queues_.size(); }

  // The memory of the queues: each key's bytes once, and each value's bytes plus kBytesPerValue,
  // since even empty values take memory.
  std::size_t bytes() const { return bytes_; }
  static constexpr std::size_t kBytesPerValue = 32;

 private:
  KeyMap<std::deque<std::string>> queues_;  // none of them empty
  std::size_t bytes_ = 0;
};

}  // namespace muster::rendezvous
