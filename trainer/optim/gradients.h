// Gradient clipping, so that one bad batch cannot derail the training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/runtime/named_tensor.h"

namespace muster::trainer {

// Scales all gradients by one factor so that their joint 2-norm is at most `max_norm`, and returns
// the norm before scaling, a tensor of one number that is not synchronized with a GPU:
// torch.nn.utils.clip_grad_norm_(parameters, max_norm), bit for bit. Skips parameters without a
// gradient; returns 0 if none has one. As in Python, a NaN norm makes all gradients NaN, and an
// infinite norm turns finite gradients into 0 and infinite ones into NaN; the caller can tell from
// the returned norm. After DDP has averaged the gradients, every rank gets the same result.
at::Tensor ClipGradientNorm(const std::vector<NamedTensor>& parameters, double max_norm);

// Checks that the numbers in tensors are finite.

// Whether no element is NaN or infinite. Undefined and integer tensors count as finite. Reads the
// memory once, and synchronizes with the device once.
bool AllFinite(const std::vector<at::Tensor>& tensors);

// The name of the first tensor that is not finite; empty if all are.
std::string FirstNotFinite(const std::vector<NamedTensor>& tensors);

// Keeps small gradients from vanishing in float16.

// The factor by which losses are multiplied before the backward pass, and gradients divided after
// it: as large as possible without an overflow. Works like torch.cuda.amp.GradScaler, except that
// it never falls below 1, or below its initial value: a gradient that overflows even then is not
// finite by itself. Powers of two are exact. One thread.
class LossScaler {
 public:
  struct State {
    double scale = 1;
    std::int64_t steps_since = 0;  // since the scale last changed, all without overflow

    bool operator==(const State&) const = default;
  };

  // Starts with `scale`, which is doubled after `window` steps in a row without an overflow.
  LossScaler(double scale, std::int64_t window);

  double scale() const { return state_.scale; }
  std::int64_t window() const { return window_; }
  const State& state() const { return state_; }
  void Load(const State& state) { state_ = state; }

  // Whether the scale alone may have caused a gradient that is not finite.
  bool blames_scale() const { return state_.scale > least_; }

  // Call once per step, with whether its gradients were finite.
  void Update(bool finite);

 private:
  const std::int64_t window_;
  const double least_;
  State state_;
};

}  // namespace muster::trainer
