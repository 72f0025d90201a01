// Those who wait at a barrier, until a key's count has reached the size they named.
//
// The count itself is a value in the KeyValueStore, so anybody may read or change it; this list
// only knows who is parked at which key, and for what size.
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
  // Parks a wait, which has a number of its own, until the count of `key` is `world_size`.
  void Add(WaiterId waiter, std::string_view key, std::int64_t world_size);

  // Ends a wait without completing it. False if it is not pending (any more).
  bool Cancel(WaiterId waiter);

  // Whether anybody waits at `key`.
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
  // By size, so that the cost of an arrival that releases nobody does not depend on how many are
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

}  // namespace muster::rendezvous
