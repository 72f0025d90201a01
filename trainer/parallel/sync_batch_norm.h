// Batch normalization over the batches of all ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/comm/group.h"
#include "trainer/models/network.h"

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
//
// Without `counts`, this rank's rows are normalized but excluded from the statistics: a rank
// without samples in a step passes some of another rank's.
at::Tensor SyncBatchNormTraining(const at::Tensor& input, BatchNormState state, double momentum,
                                 double eps, Group& group, bool counts = true);

// Batch normalization over the samples of all ranks, for --sync-bn.

// Replaces a model's own batch normalization. Belongs to one rank and one thread. The group, whose
// members must make the same calls, must outlive it, and it must outlive the model's passes.
class SyncedBatchNorm {
 public:
  explicit SyncedBatchNorm(Group& group) : group_(group) {}
  SyncedBatchNorm(const SyncedBatchNorm&) = delete;
  SyncedBatchNorm& operator=(const SyncedBatchNorm&) = delete;

  // For Model::SetBatchNorm().
  BatchNormFunction function();

  // Call it before each pass: whether the samples are this rank's own. Otherwise they only keep it
  // in step with the others, and must not enter any statistic.
  void SetCounts(bool counts) { counts_ = counts; }

 private:
  Group& group_;
  bool counts_ = true;
};

}  // namespace muster::trainer
