// A backward pass in two halves, for schedules that put the gradients of weights off.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

struct SplitBackward {
  // That of the inputs; not defined when the outputs do not depend on them.
  at::Tensor input_gradient;
  // Adds what is left to the gradients of parameters, as backward() would: hooks on their
  // AccumulateGrad run. Call it once, on any thread; then, or when it is destroyed, the last of the
  // graph is freed.
  std::function<void()> weights;
};

// Runs `outputs` backward from `gradient`, of the same shape and type, as far as it takes to know
// the gradient of `inputs`, a leaf that requires one; its grad() is left alone. Both halves
// together give what backward() gives, bit for bit. Works for any graph whose backward can run
// once, and frees at once what the second half does not need. Throws what LibTorch throws.
//
// Each operation that has parameters runs backward twice, once for either kind of gradient, and no
// other does. What it cannot split it computes in the first half: the gradient of a parameter that
// several operations use, or one inside a torch::autograd::Function, and everything when `inputs`
// does not require a gradient.
SplitBackward BackwardOfInputs(const at::Tensor& outputs, const at::Tensor& gradient,
                               const at::Tensor& inputs);

}  // namespace muster::trainer
