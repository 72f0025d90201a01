// How batch normalization is computed: a seam for computing it over several ranks.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// What a batch normalization layer is made of. The tensors are the layer's own: a function that
// trains updates the running ones in place (they need no gradient).
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

// Normalizes `input`, N x C x H x W, and returns as much. Called on the thread that calls
// Model::Forward, layer by layer in the same order on every rank; may throw what LibTorch throws.
using BatchNormFunction =
    std::function<at::Tensor(const at::Tensor& input, const BatchNormParts& parts)>;

// What torch.nn.BatchNorm2d does: statistics of this rank's batch alone.
at::Tensor LocalBatchNorm(const at::Tensor& input, const BatchNormParts& parts);

}  // namespace muster::trainer
