// How often what thousands change is written down.
#pragma once

#include <algorithm>
#include <chrono>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// A batch holds the whole of each job that has changed, so to make one of a job of thousands takes
// the loop milliseconds. While they come in, a batch after each of them would leave no time
// to hear them. So the loop does something else for four times as long as it took to make the last
// one, but no longer than a second, in which more come that the next batch holds. A batch that is
// quickly made is not waited with.
class CommitPace {
 public:
  // To make a batch took so much of the loop's processor time, until `now`.
  void Made(Duration cost, TimePoint now) {
    next_ = cost < kQuick ? TimePoint::min() : now + std::min(kOther * cost, kLongest);
  }
  // When the next may be made.
  TimePoint next() const { return next_; }

 private:
  static constexpr Duration kQuick = std::chrono::milliseconds(2);
  static constexpr int kOther = 4;
  static constexpr Duration kLongest = std::chrono::seconds(1);

  TimePoint next_ = TimePoint::min();
};

}  // namespace muster::rendezvous
