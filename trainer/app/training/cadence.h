// How many steps pass between agreements of the ranks.
#pragma once

#include <cstdint>

namespace muster::trainer {

// The ranks have to agree on whether one of them was told to stop, and on the losses that rank 0
// shows. Since an agreement costs as much as a small step, there are about four a second, not one
// in each step. The interval is computed from numbers that all ranks share, so it is the same on
// all of them.
class Cadence {
 public:
  // Steps from one agreement to the next. 1 at first, while the time of a step is unknown.
  std::int64_t interval() const { return interval_; }

  // Call this after each agreement. `seconds` is the mean time of a step since the last one, over
  // all ranks. The interval at most doubles, because the first steps can be unusual.
  void OnAgreed(double seconds);

 private:
  std::int64_t interval_ = 1;
};

}  // namespace muster::trainer
