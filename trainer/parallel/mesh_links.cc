#include "trainer/parallel/mesh_links.h"

#include <map>
#include <set>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "trainer/comm/host/operation_log.h"
#include "trainer/worker/timing.h"

namespace muster::trainer {

bool TensorGroupLinks::Rehearses(Operation operation, const at::Tensor& x) {
  if (dry_run_ == nullptr) return false;
  dry_run_->Add(Use::kActivations, operation, static_cast<std::int64_t>(x.nbytes()), std::nullopt);
  return true;
}

void TensorGroupLinks::Max(at::Tensor& tensor) {
  if (Rehearses(Operation::kAllReduce, tensor)) return;
  const at::NoGradGuard no_grad;
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MAX;
  std::vector<at::Tensor> tensors = {tensor};
  const WaitScope waits;
  group_.Backend(Use::kActivations)->allreduce(tensors, options)->wait();
}

void TensorGroupLinks::Sum(at::Tensor& tensor) {
  if (Rehearses(Operation::kAllReduce, tensor)) return;
  group_.AllReduce(tensor, Use::kActivations);
}

TensorLinks::Pending TensorGroupLinks::BeginGather(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  if (Rehearses(Operation::kAllGather, x)) {
    return [this, x] {
      return at::stack(std::vector<at::Tensor>(static_cast<std::size_t>(parts()), x));
    };
  }
  if (!runs_aside()) {
    return [all = group_.AllGather(x.unsqueeze(0), Use::kActivations)] { return all; };
  }
  const PendingGather gather = group_.AllGatherAsync(x, Use::kActivations);
  return [gather] {
    {
      const WaitScope waits;
      gather.work->wait();
    }
    return at::stack(gather.tensors);
  };
}

TensorLinks::Pending TensorGroupLinks::BeginSum(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  at::Tensor sum = x.clone();  // a gradient may be shared with others
  if (Rehearses(Operation::kAllReduce, x)) return [sum] { return sum; };
  const bool half = sum.scalar_type() == at::kHalf || sum.scalar_type() == at::kBFloat16;
  if (!runs_aside() || half) {
    group_.AllReduce(sum, Use::kActivations);
    return [sum] { return sum; };
  }
  return [sum, work = group_.AllReduceAsync(sum, Use::kActivations)] {
    const WaitScope waits;
    work->wait();
    return sum;
  };
}

TensorLinks::Pending TensorGroupLinks::BeginScatter(const at::Tensor& x) {
  if (Rehearses(Operation::kReduceScatter, x)) return [x] { return x[0].clone(); };
  const at::Tensor own = group_.ReduceScatter(x, Use::kActivations).squeeze(0);
  return [own] { return own; };
}

SplitBytes BytesOfSplit(const SplitGpt& gpt) {
  const std::int64_t activations = gpt.tokens * gpt.width * gpt.bytes;
  const std::int64_t embeds = gpt.embeds ? 1 : 0;
  const std::int64_t scores = gpt.scores ? 1 : 0;
  const std::int64_t loss = RingBytes(gpt.ranks, scores * 3 * gpt.tokens * gpt.loss_bytes);
  const auto halves = [&](std::int64_t count) {  // of an all-reduce
    return RingBytes(gpt.ranks, count * activations) / 2;
  };
  if (gpt.splits_sequence) {
    return {.forward = halves(4 * gpt.layers + embeds + scores) + loss,
            .backward = halves(6 * gpt.layers + embeds + 2 * scores)};
  }
  return {.forward = halves(4 * gpt.layers + 2 * embeds) + loss,
          .backward = halves(4 * gpt.layers + 2 * scores)};
}

std::vector<SharedParameters> FindShared(const Model& model, const PipelineShape& shape,
                                         const std::vector<StageRange>& parts) {
  std::map<std::string, std::set<int>> users;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (const NamedTensor& one : model.ParametersOf(parts[part])) {
      users[one.name].insert(shape.RankOf(static_cast<int>(part)));
    }
  }
  std::map<std::set<int>, std::vector<std::string>> names;
  for (const auto& [name, ranks] : users) {
    if (ranks.size() > 1) names[ranks].push_back(name);
  }
  std::vector<SharedParameters> shared;
  for (const auto& [ranks, their] : names) {
    shared.push_back({{ranks.begin(), ranks.end()}, their});
  }
  return shared;
}

void SumSharedGradients(const std::vector<NamedTensor>& parameters, Group& group) {
  if (group.size() == 1) return;
  const at::NoGradGuard no_grad;
  for (const NamedTensor& one : parameters) {
    at::Tensor& gradient = one.tensor.mutable_grad();
    if (!gradient.defined()) gradient = at::zeros_like(one.tensor);
    at::Tensor sum = gradient.contiguous();
    group.AllReduce(sum, Use::kGradients);
    if (!sum.is_same(gradient)) gradient.copy_(sum);
  }
}

}  // namespace muster::trainer
