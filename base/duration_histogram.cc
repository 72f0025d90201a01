#include "base/duration_histogram.h"

#include <algorithm>
#include <numeric>

namespace muster::base {

void DurationHistogram::Observe(std::chrono::nanoseconds duration) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), duration) - bounds_.begin();
  ++counts_[static_cast<std::size_t>(bucket)];
  sum_ += duration;
}

std::uint64_t DurationHistogram::UpTo(std::size_t i) const {
  const auto end = counts_.begin() + static_cast<std::ptrdiff_t>(i) + 1;
  return std::accumulate(counts_.begin(), end, std::uint64_t{0});
}

}  // namespace muster::base
