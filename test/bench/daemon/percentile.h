// What part of some times are no longer than.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace muster::rendezvous::bench {

// In microseconds; 0.99 of the times are not longer, say. 0 of none.
inline double PercentileUs(std::vector<std::chrono::nanoseconds> times, double part) {
  if (times.empty()) return 0;
  const auto place = times.begin() + static_cast<std::ptrdiff_t>(part * (times.size() - 1));
  std::nth_element(times.begin(), place, times.end());
  return std::chrono::duration<double, std::micro>(*place).count();
}

}  // namespace muster::rendezvous::bench
