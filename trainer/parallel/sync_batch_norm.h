// Batch normalization over the batches of all ranks together.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"

namespace muster::trainer {

// A batch normalization layer's tensors, of C values each. `weight` and `bias` may be undefined.
// `running_mean` and `running_var` are updated in training, or both undefined.
struct BatchNormState {
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor running_mean;
  at::Tensor running_var;
};

// torch.nn.SyncBatchNorm's training step. Normalizes `input` (N x C x ..., where N may differ
// between ranks and be 0 on some) with the mean and variance over all ranks' inputs, and moves the
// running mean and variance towards them by `momentum` (the variance unbiased, with n/(n-1), as in
// Python). Statistics of half and bfloat16 inputs are computed in float. Differentiable. All ranks
// must call it, and run backward() through it, in the same order. Throws what c10d throws.
at::Tensor SyncBatchNormTraining(const at::Tensor& input, BatchNormState state, double momentum,
                                 double eps, Group& group);

}  // namespace muster::trainer
