// How many steps pass between two words among the ranks.
#pragma once

#include <cstdint>

namespace muster::trainer {

// Ranks have to agree on whether somebody was told to stop, and on the losses that rank 0 shows.
// Each time costs as much as a small step, so it is done about four times a second rather than in
// each step. The interval follows from numbers that all ranks know, so it is the same on all.
class Cadence {
 public:
  // Steps from one agreement to the next; 1 at first, when nobody knows how long a step takes.
  std::int64_t interval() const { return interval_; }

  // The ranks have agreed; a step took `seconds` on the mean of ranks and of steps since the last
  // time. The interval at most doubles, since first steps can be misleading.
  void OnAgreed(double seconds);

 private:
  std::int64_t interval_ = 1;
};

}  // namespace muster::trainer
