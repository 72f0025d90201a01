// Pauses that grow.
#pragma once

#include <algorithm>
#include <chrono>

namespace muster::base {

// Between attempts that fail one after another: `first`, then twice as long each time, up to
// `longest`.
class Backoff {
 public:
  using Duration = std::chrono::milliseconds;

  Backoff(Duration first, Duration longest) : first_(first), longest_(longest), next_(first) {}

  // The pause after one more failure.
  Duration Next() {
    const Duration pause = next_;
    next_ = std::min(2 * next_, longest_);
    return pause;
  }
  // An attempt has succeeded.
  void Reset() { next_ = first_; }

 private:
  const Duration first_;
  const Duration longest_;
  Duration next_;
};

}  // namespace muster::base
