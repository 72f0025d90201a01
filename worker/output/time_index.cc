#include "worker/output/time_index.h"

#include <algorithm>

namespace muster::worker {

void TimeIndex::Add(Time now, std::uint64_t offset) {
  if (!points_.empty() && now - points_.back().time < interval_) return;
  points_.push_back({now, offset});
  while (points_.size() > kMost) Thin();
}

// Only points that are near to the one before are given up: what came after a pause stays apart.
void TimeIndex::Thin() {
  interval_ *= 2;
  std::vector<Point> kept;
  for (const Point& point : points_) {
    if (kept.empty() || point.time - kept.back().time >= interval_) kept.push_back(point);
  }
  points_ = std::move(kept);
}

std::uint64_t TimeIndex::Find(Time time, std::uint64_t end) const {
  const auto next =
      std::upper_bound(points_.begin(), points_.end(), time,
                       [](Time wanted, const Point& point) { return wanted < point.time; });
  if (next != points_.begin()) {
    const Point& before = *(next - 1);
    if (time - before.time < interval_) return before.offset;
  }
  return next == points_.end() ? end : next->offset;
}

}  // namespace muster::worker
