// First-in-first-out queues of values, one for each key that somebody pushes to.
//
// A queue exists while something is in it, and is forgotten when the last value is taken out. It is
// independent of the value that its key may have in the KeyValueStore.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/core/key_map.h"

namespace muster::rendezvous {

// Part of a KeyValueStore, which owns it and keeps its limits.
class KeyQueues {
 public:
  void Push(std::string_view key, std::string_view value);

  // Takes out the oldest value; nullopt when the queue is empty.
  std::optional<std::string> Pop(std::string_view key);

  // How many values are in the queue; 0 for one that was never pushed to.
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
