// Hash maps and sets whose keys are bytes and which can be searched by std::string_view without a
// copy. Their order is arbitrary and differs between runs: no decision of the core may depend on
// it.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace muster::rendezvous {

// Debian builds Abseil with a string_view of its own, which std's does not convert to; hence this
// hash.
struct KeyHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view key) const {
    return absl::Hash<absl::string_view>()(absl::string_view(key.data(), key.size()));
  }
};

template <typename Value>
using KeyMap = absl::flat_hash_map<std::string, Value, KeyHash, std::equal_to<>>;
using KeySet = absl::flat_hash_set<std::string, KeyHash, std::equal_to<>>;

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
