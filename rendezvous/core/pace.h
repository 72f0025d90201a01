// How fast somebody may go on who does the same thing again and again.
#pragma once

#include <algorithm>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// So many in a second, and so many at once after a rest. (The generic cell rate algorithm of ITU-T
// I.371, appendix A.)
class Pace {
 public:
  Pace(int in_a_second, int at_once)
      : interval_(Duration(std::chrono::seconds(1)) / in_a_second),
        ahead_(interval_ * (at_once - 1)) {}

  // It has been done once more. When it may be done next: not after `now` if that is at once.
  TimePoint Next(TimePoint now) {
    due_ = std::max(due_, now) + interval_;
    return due_ - ahead_;
  }

 private:
  const Duration interval_, ahead_;
  TimePoint due_{};
};

}  // namespace muster::rendezvous
