// Those who wait at a barrier: until the number that a key counts has reached the size they named.
//
// The count itself is a value of the KeyValueStore, so anybody may read or change it; this list
// only knows who is parked at which key, and for how many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "rendezvous/core/key_map.h"
#include "rendezvous/core/wait_list.h"

namespace muster::rendezvous {

// Part of a KeyValueStore, which owns it, numbers the waits and tells it of every count.
class BarrierList {
 public:
  // Parks a wait with a number of its own until `key` counts `world_size`.
  void Add(WaiterId waiter, std::string_view key, std::int64_t world_size);

  // Ends a wait without completing it. False when it does not pend (any more).
  bool Cancel(WaiterId waiter);

  // Whether anybody waits at `key`.
  bool Contains(std::string_view key) const { return barriers_.contains(key); }

  // `key` counts `count` now: completes the waits that were for no more than that, those for the
  // smallest size first, then in order of arrival. Adds them to `ended`.
  void Counted(std::string_view key, std::int64_t count, std::vector<CompletedWait>& ended);

  // Completes every wait at `key`, in the same order.
  void Release(std::string_view key, std::vector<CompletedWait>& ended) {
    Counted(key, std::numeric_limits<std::int64_t>::max(), ended);
  }

  // Number of pending waits.
  std::size_t size() const { return places_.size(); }

  // What the pending waits hold: for each its key's bytes and kBytesPerWait.
  std::size_t bytes() const { return bytes_; }
  static constexpr std::size_t kBytesPerWait = 64;

 private:
  // By size, so that an arrival that releases nobody costs nothing for those who are parked.
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

}  // namespace muster::rendezvous
