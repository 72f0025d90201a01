// The clock of one simulated machine.
#pragma once

#include <algorithm>
#include <cstdint>

#include "test/rendezvous/simulation/scheduler.h"

namespace muster::rendezvous {

// Differs from the true time by an offset, and runs faster or slower by some millionths.
class SimClock {
 public:
  explicit SimClock(const Scheduler& scheduler) : scheduler_(scheduler) {}

  // As when the machine starts.
  void StartAt(Duration offset) { offset_ = offset; }
  void RunFaster(std::int64_t ppm) { ppm_ = ppm; }

  TimePoint Now() const {
    const Duration time = scheduler_.now().time_since_epoch();
    const Duration gained = time / kMillion * ppm_ + time % kMillion * ppm_ / kMillion;
    return TimePoint(offset_ + time + gained);
  }
  // In true time: how long until this clock shows `time`.
  Duration Until(TimePoint time) const {
    const Duration left = std::max(time - Now(), Duration::zero());
    return left == Duration::zero() || ppm_ == 0 ? left : left - left / (kMillion + ppm_) * ppm_;
  }

 private:
  static constexpr std::int64_t kMillion = 1'000'000;

  const Scheduler& scheduler_;
  Duration offset_{};
  std::int64_t ppm_ = 0;
};

}  // namespace muster::rendezvous
