// How batch normalization is computed, replaceable so that it can span several ranks.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// The parts of a batch normalization layer. The tensors are the layer's own: in training, a
// BatchNormFunction updates the running statistics, which need no gradient, in place.
struct BatchNormParts {
  at::Tensor weight;               // C, a parameter
  at::Tensor bias;                 // C, a parameter
  at::Tensor running_mean;         // C
  at::Tensor running_var;          // C
  at::Tensor num_batches_tracked;  // int64 scalar
  double momentum = 0.1;
  double epsilon = 1e-5;
  bool training = true;
};

// Normalizes `input`, N x C x H x W, and returns a tensor of the same shape. Called on the thread
// that calls Model::Forward, layer by layer, in the same order on every rank. May throw what
// LibTorch throws.
using BatchNormFunction =
    std::function<at::Tensor(const at::Tensor& input, const BatchNormParts& parts)>;

// What torch.nn.BatchNorm2d does: in training, uses the statistics of this rank's batch only.
at::Tensor LocalBatchNorm(const at::Tensor& input, const BatchNormParts& parts);

}  // namespace muster::trainer
