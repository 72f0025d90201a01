// How long something has taken.
#pragma once

#include <chrono>

namespace muster::trainer {

// Runs from when it is made, or from when it was last started again. One thread.
class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void Restart() { start_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point start_ = Clock::now();
};

}  // namespace muster::trainer
