// A histogram of durations.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::base {

// A value. It reads no clock, and Observe() takes a few nanoseconds.
class DurationHistogram {
 public:
  // Upper bounds of the buckets, ascending; they must outlive the histogram. The last bucket counts
  // everything above the last bound.
  using Bounds = std::span<const std::chrono::nanoseconds>;

  explicit DurationHistogram(Bounds bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  void Observe(std::chrono::nanoseconds duration);

  Bounds bounds() const { return bounds_; }
  // How many durations were at most bounds()[i]; UpTo(bounds().size()) counts all of them.
  std::uint64_t UpTo(std::size_t i) const;
  std::uint64_t count() const { return UpTo(bounds_.size()); }
  std::chrono::nanoseconds sum() const { return sum_; }

 private:
  Bounds bounds_;
  std::vector<std::uint64_t> counts_;
  std::chrono::nanoseconds sum_{};
};

// Durations as users write them: a number of seconds.

// Reads "30" or "0.5". nullopt if it is not a number, is negative or is longer than 30 years.
std::optional<std::chrono::milliseconds> ParseSeconds(absl::string_view text);

// The earlier of two optional deadlines.

// nullopt if both are missing.
template <typename Time>
std::optional<Time> Earliest(const std::optional<Time>& a, const std::optional<Time>& b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() ? a : b;
  return std::min(*a, *b);
}

}  // namespace muster::base
