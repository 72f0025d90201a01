// What the stages of a model cost, and which of them a part of a pipeline has.
#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/models/model.h"

namespace muster::trainer {

// A cost of each stage for the model's `inputs`, one sample or more, of which only sizes and type
// matter: the same on every rank, and without a clock. It is the number of multiplications in the
// matrix products and convolutions of a forward pass, and kCostOfNumber for each number that the
// stage returns, which stands for everything else; a backward pass takes twice that everywhere.
// What a torch::autograd::Function multiplies is not seen. Leaves the model in training, and its
// buffers as they are. Throws what the model throws.
std::vector<double> StageCosts(Model& model, const at::Tensor& inputs);

// A core multiplies about that often in the time in which it writes a number to memory.
inline constexpr double kCostOfNumber = 16;

// The stages of each part, from those that parts begin with (CutEvenly(), CutAt()).
std::vector<StageRange> RangesOf(const std::vector<std::size_t>& begins, std::size_t stages);

}  // namespace muster::trainer
