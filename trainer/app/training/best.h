// The best result of the tests so far.
#pragma once

#include <cstdint>
#include <limits>

namespace muster::trainer {

struct Best {
  double loss = std::numeric_limits<double>::infinity();  // in nats; infinite before the first test
  std::int64_t step = 0;                                  // the step after which it was measured
  std::int64_t tests_since = 0;                           // in a row, none of them better

  // Records the test loss after step `tested_step`. NaN is worse than any other loss.
  void Add(std::int64_t tested_step, double tested_loss) {
    if (tested_loss < loss) {
      *this = {tested_loss, tested_step, 0};
    } else {
      ++tests_since;
    }
  }
};

}  // namespace muster::trainer
