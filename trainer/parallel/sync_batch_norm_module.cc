#include "trainer/parallel/sync_batch_norm_module.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

using torch::nn::BatchNorm1dImpl;
using torch::nn::BatchNorm2dImpl;
using torch::nn::SequentialImpl;

bool IsBatchNorm(torch::nn::Module& module) {
  return module.as<BatchNorm1dImpl>() != nullptr || module.as<BatchNorm2dImpl>() != nullptr;
}

// The name of the first batch norm that a module other than a Sequential holds; empty if none is.
std::string FindIrreplaceable(torch::nn::Module& module, const std::string& prefix) {
  for (const auto& child : module.named_children()) {
    const std::string name = absl::StrCat(prefix, child.key());
    if (IsBatchNorm(*child.value()) && module.as<SequentialImpl>() == nullptr) return name;
    std::string found = FindIrreplaceable(*child.value(), name + ".");
    if (!found.empty()) return found;
  }
  return "";
}

// A SyncBatchNorm with `old`'s own tensors.
template <typename BatchNorm>
SyncBatchNorm Adopt(const BatchNorm& old, ProcessGroup& group) {
  SyncBatchNorm fresh(old.options,
                      BatchNormState{old.weight, old.bias, old.running_mean, old.running_var},
                      old.num_batches_tracked, &group);
  fresh->train(old.is_training());
  return fresh;
}

// A Sequential runs its list, and shows the modules that are registered: both are replaced.
void ReplaceIn(SequentialImpl& sequential, ProcessGroup& group) {
  const auto children = sequential.named_children();
  std::size_t place = 0;
  for (torch::nn::AnyModule& layer : sequential) {
    const std::string name = children[place++].key();
    SyncBatchNorm fresh{nullptr};
    if (auto* const one = layer.ptr()->as<BatchNorm1dImpl>()) fresh = Adopt(*one, group);
    if (auto* const two = layer.ptr()->as<BatchNorm2dImpl>()) fresh = Adopt(*two, group);
    if (fresh.is_empty()) continue;
    layer = torch::nn::AnyModule(fresh);
    sequential.replace_module(name, fresh.ptr());
  }
}

// Returns how many it has set the group of, those that have just taken a place included.
int Convert(torch::nn::Module& module, ProcessGroup& group) {
  if (auto* const ours = module.as<SyncBatchNormImpl>()) {
    ours->set_group(&group);
    return 1;
  }
  if (auto* const sequential = module.as<SequentialImpl>()) ReplaceIn(*sequential, group);
  int count = 0;
  for (const auto& child : module.children()) count += Convert(*child, group);
  return count;
}

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& options,
                                     ProcessGroup* group)
    : options(options), group_(group) {
  SyncBatchNormImpl::reset();
}

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& options,
                                     const BatchNormState& state, const at::Tensor& batches,
                                     ProcessGroup* group)
    : options(options), group_(group) {
  Register(state, batches);
}

void SyncBatchNormImpl::reset() {
  const std::int64_t channels = options.num_features();
  BatchNormState state;
  at::Tensor batches;
  if (options.affine()) {
    state.weight = torch::ones({channels}).requires_grad_();
    state.bias = torch::zeros({channels}).requires_grad_();
  }
  if (options.track_running_stats()) {
    state.running_mean = torch::zeros({channels});
    state.running_var = torch::ones({channels});
    batches = torch::tensor(0, torch::kLong);
  }
  Register(state, batches);
}

void SyncBatchNormImpl::Register(const BatchNormState& state, const at::Tensor& batches) {
  const auto trains = [](const at::Tensor& tensor) {
    return tensor.defined() && tensor.requires_grad();
  };
  weight = register_parameter("weight", state.weight, trains(state.weight));
  bias = register_parameter("bias", state.bias, trains(state.bias));
  running_mean = register_buffer("running_mean", state.running_mean);
  running_var = register_buffer("running_var", state.running_var);
  num_batches_tracked = register_buffer("num_batches_tracked", batches);
}

at::Tensor SyncBatchNormImpl::forward(const at::Tensor& input) {
  const bool own_statistics = is_training() || !running_mean.defined();
  double momentum = options.momentum().value_or(0.0);
  if (is_training() && num_batches_tracked.defined()) {
    num_batches_tracked.add_(1);
    // Without a momentum, the running statistics are the mean over all batches.
    if (!options.momentum()) momentum = 1.0 / num_batches_tracked.item<double>();
  }
  if (is_training() && group_ != nullptr && group_->size() > 1) {
    return SyncBatchNormTraining(input, {weight, bias, running_mean, running_var}, momentum,
                                 options.eps(), *group_);
  }
  return at::batch_norm(input, weight, bias, running_mean, running_var, own_statistics, momentum,
                        options.eps(), /*cudnn_enabled=*/true);
}

absl::StatusOr<int> ConvertSyncBatchNorm(torch::nn::Module& root, ProcessGroup& group) {
  const std::string held = FindIrreplaceable(root, "");
  if (!held.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "convert to SyncBatchNorm: ", held,
        " is a member of a module that would go on calling it; make it a SyncBatchNorm there"));
  }
  return Convert(root, group);
}

}  // namespace muster::trainer
