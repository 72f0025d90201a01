#include "trainer/parallel/tensor_group_links.h"

#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace muster::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The group outlives the graph, which keeps its address.
std::int64_t Address(Group& group) {
  return reinterpret_cast<std::int64_t>(&group);
}

Group& GroupOf(AutogradContext* context) {
  return *reinterpret_cast<Group*>(context->saved_data["group"].toInt());
}

// Of a copy: a gradient may be somebody else's as well.
at::Tensor SumOf(const at::Tensor& tensor, Group& group) {
  at::Tensor sum = tensor.clone(at::MemoryFormat::Contiguous);
  group.AllReduce(sum, Use::kActivations);
  return sum;
}

struct CopyFunction : torch::autograd::Function<CopyFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, std::int64_t group) {
    context->saved_data["group"] = group;
    return x.view_as(x);  // the input itself as the output would be no function to autograd
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {SumOf(gradients[0], GroupOf(context)), at::Tensor()};
  }
};

struct ReduceFunction : torch::autograd::Function<ReduceFunction> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x, std::int64_t group) {
    return SumOf(x, *reinterpret_cast<Group*>(group));
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0], at::Tensor()};
  }
};

struct GatherFunction : torch::autograd::Function<GatherFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, std::int64_t dimension,
                            std::int64_t group) {
    Group& ranks = *reinterpret_cast<Group*>(group);
    context->saved_data["group"] = group;
    context->saved_data["dimension"] = dimension;
    const at::Tensor parts =
        ranks.AllGather(x.contiguous().unsqueeze(0), Use::kActivations);  // ranks x ...
    return at::cat(parts.unbind(0), dimension);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Group& group = GroupOf(context);
    const std::int64_t dimension = context->saved_data["dimension"].toInt();
    const std::int64_t own = gradients[0].size(dimension) / group.size();
    return {gradients[0].narrow(dimension, group.rank() * own, own), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor TensorGroupLinks::Copy(const at::Tensor& x) {
  return CopyFunction::apply(x, Address(group_));
}

at::Tensor TensorGroupLinks::Reduce(const at::Tensor& x) {
  return ReduceFunction::apply(x, Address(group_));
}

at::Tensor TensorGroupLinks::Gather(const at::Tensor& x, std::int64_t dimension) {
  return GatherFunction::apply(x, dimension < 0 ? dimension + x.dim() : dimension, Address(group_));
}

void TensorGroupLinks::Max(at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MAX;
  std::vector<at::Tensor> tensors = {tensor};
  group_.Backend(Use::kActivations)->allreduce(tensors, options)->wait();
}

void TensorGroupLinks::Sum(at::Tensor& tensor) {
  group_.AllReduce(tensor, Use::kActivations);
}

}  // namespace muster::trainer
