// Keeps small gradients from vanishing in float16.
#pragma once

#include <cstdint>

namespace muster::trainer {

// The factor by which losses are multiplied before the backward pass, and gradients divided after
// it: as large as it can be without an overflow. What torch.cuda.amp.GradScaler does, except that
// it does not become less than 1, or than what it began with: a gradient that overflows even then
// is not finite by itself. Powers of two change nothing else, as they lose no bit. One thread.
class LossScaler {
 public:
  struct State {
    double scale = 1;
    std::int64_t steps_since = 0;  // the scale last changed, none of which overflowed

    bool operator==(const State&) const = default;
  };

  // Begins with `scale`, which is doubled after `window` steps in a row without an overflow.
  LossScaler(double scale, std::int64_t window);

  double scale() const { return state_.scale; }
  std::int64_t window() const { return window_; }
  const State& state() const { return state_; }
  void Load(const State& state) { state_ = state; }

  // Whether a gradient that is not finite may be so for the scale alone.
  bool blames_scale() const { return state_.scale > least_; }

  // Call this once for each step, with whether its gradients were finite.
  void Update(bool finite);

 private:
  const std::int64_t window_;
  const double least_;
  State state_;
};

}  // namespace muster::trainer
