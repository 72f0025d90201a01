// The earlier of two deadlines, each of which there may be or not.
#pragma once

#include <algorithm>
#include <optional>

namespace muster::base {

// Nothing when there is neither.
template <typename Time>
std::optional<Time> Earliest(const std::optional<Time>& a, const std::optional<Time>& b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() ? a : b;
  return std::min(*a, *b);
}

}  // namespace muster::base
