// Those who wait for keys to come into existence.
//
// A wait pends on the keys that were missing when it was added. Each of them is a latch: once it
// has been created it counts as seen, even if it is deleted again (as in c10d's waits). The wait
// ends when all are seen, when its deadline passes or when it is cancelled, whichever comes first,
// and never twice.
//
// A value pushed into a queue is for one taker, so a push completes one wait at most; see
// KeyPushed.
//
// Waits are indexed by missing key, so creating a key only costs time for those who wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "rendezvous/core/key_map.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// One pending wait. Numbered from 1 in order of arrival; never reused.
using WaiterId = std::uint64_t;

enum class WaitEnd {
  kReady,     // every key it named has existed, or everybody has come
  kTimedOut,  // its deadline passed first
  kReplaced,  // at a meeting: the same caller came once more, and waits there now
};

struct CompletedWait {
  WaiterId waiter = 0;
  WaitEnd end = WaitEnd::kReady;
  // Timed out at a meeting: the most that were there at once while it waited, itself included.
  std::uint64_t reached = 0;

  bool operator==(const CompletedWait&) const = default;
};

// Part of a KeyValueStore, which owns it, numbers the waits and tells it of every key that comes
// into existence. Waits that complete are added to `ended`, in the order in which they do.
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
  // missing. If there is none, the value is still there for anybody, and all waits on the key have
  // seen it.
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
  // Stands for a missing key in the waits on it. Not reused, so that a wait may keep the numbers of
  // keys that were created meanwhile.
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

}  // namespace muster::rendezvous
