// Hash maps and sets whose keys are bytes and which can be searched by std::string_view without a
// copy. Their order is arbitrary and differs between runs: no decision of the core may depend on
// it.
#pragma once

#include <cstddef>
#include <functional>
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

}  // namespace muster::rendezvous
