// Durations, counted by how long they were.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::base {

// A value: it asks no clock, and to observe takes some nanoseconds.
class DurationHistogram {
 public:
  // Upper bounds of the buckets, growing; they must outlive this. The last bucket has all that was
  // longer.
  using Bounds = std::span<const std::chrono::nanoseconds>;

  explicit DurationHistogram(Bounds bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  void Observe(std::chrono::nanoseconds duration);

  Bounds bounds() const { return bounds_; }
  // How many were not longer than bounds()[i]; those of bounds().size() are all.
  std::uint64_t UpTo(std::size_t i) const;
  std::uint64_t count() const { return UpTo(bounds_.size()); }
  std::chrono::nanoseconds sum() const { return sum_; }

 private:
  Bounds bounds_;
  std::vector<std::uint64_t> counts_;
  std::chrono::nanoseconds sum_{};
};

}  // namespace muster::base
