// Synchronised batch normalisation as a module of LibTorch's. Include it only from .cc files: the
// base classes cost as much to compile as torch/torch.h.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/options/batchnorm.h>
#include <torch/nn/pimpl.h>

#include "absl/status/statusor.h"

#include "trainer/comm/process_group.h"
#include "trainer/parallel/sync_batch_norm.h"

namespace muster::trainer {

// A module that computes what torch::nn::BatchNorm1d and 2d do, over the ranks of `group` while it
// is training, and alone without a group. Names of parameters and buffers are the same, so a state
// dict fits both.
class SyncBatchNormImpl : public torch::nn::Cloneable<SyncBatchNormImpl> {
 public:
  // `group`, when there is one, must outlive this object.
  explicit SyncBatchNormImpl(const torch::nn::BatchNormOptions& options,
                             ProcessGroup* group = nullptr);
  // One that takes over these tensors.
  SyncBatchNormImpl(const torch::nn::BatchNormOptions& options, const BatchNormState& state,
                    const at::Tensor& num_batches_tracked, ProcessGroup* group);

  void reset() override;
  at::Tensor forward(const at::Tensor& input);
  void set_group(ProcessGroup* group) { group_ = group; }

  torch::nn::BatchNormOptions options;
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  void Register(const BatchNormState& state, const at::Tensor& batches);

  ProcessGroup* group_;
};
TORCH_MODULE(SyncBatchNorm);

// torch.nn.SyncBatchNorm.convert_sync_batchnorm for a LibTorch tree: gives every SyncBatchNorm
// below `root` the group, and replaces each torch::nn::BatchNorm1d and 2d in a
// torch::nn::Sequential by one that shares its parameters and buffers. Returns how many there are
// now. A batch norm that is a member of a module of another kind cannot be replaced, because that
// module would go on calling the old one: kInvalidArgument names it, and nothing was changed. Such
// a module holds a SyncBatchNorm instead, which without a group is an ordinary one.
absl::StatusOr<int> ConvertSyncBatchNorm(torch::nn::Module& root, ProcessGroup& group);

}  // namespace muster::trainer
