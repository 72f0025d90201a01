#include "base/durations.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/numbers.h"

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

std::optional<std::chrono::milliseconds> ParseSeconds(absl::string_view text) {
  // Keeps deadlines computed from it within std::chrono's nanoseconds.
  constexpr double kLongest = 1e9;
  double seconds = 0;
  // SimpleAtod also accepts "inf" and "nan", which fail these comparisons.
  if (!absl::SimpleAtod(text, &seconds) || !(seconds >= 0) || !(seconds <= kLongest)) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

}  // namespace muster::base
