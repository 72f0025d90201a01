// The cost of a model's stages, and their assignment to the parts of a pipeline.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/models/model.h"

namespace muster::trainer {

// The cost of each stage for the model's `inputs`, one sample or more, of which only sizes and type
// matter: the same on every rank, and independent of time. It is the number of multiplications in
// the matrix products and convolutions of a forward pass, plus kCostOfNumber for each number that
// the stage returns, which stands for everything else; a backward pass costs twice that everywhere.
// Multiplications in a torch::autograd::Function are not counted. Leaves the model in training, and
// its buffers unchanged. Throws what the model throws.
std::vector<double> StageCosts(Model& model, const at::Tensor& inputs);

// About the number of multiplications that a core does in the time of one write to memory.
inline constexpr double kCostOfNumber = 16;

// The stages of each part, given the first stage of each (CutEvenly(), CutAt()).
std::vector<StageRange> RangesOf(const std::vector<std::size_t>& begins, std::size_t stages);

// A backward pass in two halves, for schedules that delay the gradients of weights.

struct SplitBackward {
  // The gradient of the inputs; undefined if the outputs do not depend on them.
  at::Tensor input_gradient;
  // Adds the remaining gradients to those of the parameters, as backward() would: hooks on their
  // AccumulateGrad run. Call it once, on any thread; then, or on destruction, the rest of the graph
  // is freed.
  std::function<void()> weights;
};

// Runs `outputs` backward from `gradient`, of the same shape and type, just far enough for the
// gradient of `inputs`, a leaf that requires one; its grad() is not changed. Both halves together
// give the result of backward(), bit for bit. Works for any graph whose backward can run once, and
// immediately frees what the second half does not need. Throws what LibTorch throws.
//
// Each operation with parameters runs backward twice, once per kind of gradient, and all others
// once. What cannot be split is computed in the first half: the gradient of a parameter that
// several operations use, or inside a torch::autograd::Function, and everything if `inputs` does
// not require a gradient.
SplitBackward BackwardOfInputs(const at::Tensor& outputs, const at::Tensor& gradient,
                               const at::Tensor& inputs);

}  // namespace muster::trainer
