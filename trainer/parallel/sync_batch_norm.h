// Batch normalisation over the batches of all ranks together.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/comm/process_group.h"

namespace muster::trainer {

// What a batch normalisation knows besides its input. `running_mean` and `running_var`, of C values
// each, are brought up to date in training, or undefined. `weight` and `bias`, of C values each,
// may be undefined.
struct BatchNormState {
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor running_mean;
  at::Tensor running_var;
};

// torch.nn.SyncBatchNorm's training step: normalises `input` (N x C x ..., N may differ between
// ranks and be 0 on some) by mean and variance over all ranks' inputs, and moves the running ones
// by `momentum` towards them (the variance with n/(n-1), as Python's). Statistics are computed in
// float for half and bfloat16. Differentiable. All ranks call it, and backward() through it, in the
// same order. Throws what c10d throws.
at::Tensor SyncBatchNormTraining(const at::Tensor& input, BatchNormState state, double momentum,
                                 double eps, ProcessGroup& group);

}  // namespace muster::trainer
