#include "trainer/parallel/tensor_group_links.h"

#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "trainer/comm/wait_clock.h"

namespace muster::trainer {

bool TensorGroupLinks::Rehearses(Operation operation, const at::Tensor& x) {
  if (rehearsal_ == nullptr) return false;
  rehearsal_->Add(Use::kActivations, operation, static_cast<std::int64_t>(x.nbytes()),
                  std::nullopt);
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
  at::Tensor sum = x.clone();  // a gradient may be somebody else's as well
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

}  // namespace muster::trainer
