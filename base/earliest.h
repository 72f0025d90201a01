// The earlier of two deadlines, either of which may be missing.
#pragma once

#include <algorithm>
#include <optional>

namespace muster::base {

// nullopt when both are.
template <typename Time>
std::optional<Time> Earliest(const std::optional<Time>& a, const std::optional<Time>& b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() ? a : b;
  return std::min(*a, *b);
}

}  // namespace muster::base
