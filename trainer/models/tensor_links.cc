#include "trainer/models/tensor_links.h"

#include <stdexcept>

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/custom_function.h>

#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kSequence = 1;  // of B x T x anything

// The links outlive the graph, which keeps their address.
std::int64_t Address(TensorLinks* links) {
  return reinterpret_cast<std::int64_t>(links);
}

TensorLinks& LinksAt(std::int64_t address) {
  return *reinterpret_cast<TensorLinks*>(address);
}

TensorLinks& LinksOf(AutogradContext* context) {
  return LinksAt(context->saved_data["links"].toInt());
}

struct CopyFunction : torch::autograd::Function<CopyFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, std::int64_t links) {
    context->saved_data["links"] = links;
    const at::Tensor whole = LinksAt(links).BeginCopy(x)();
    // The input itself as the output would be no function to autograd.
    return whole.is_same(x) ? x.view_as(x) : whole;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {LinksOf(context).BeginReduce(gradients[0])(), at::Tensor()};
  }
};

struct ReduceFunction : torch::autograd::Function<ReduceFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, std::int64_t links) {
    context->saved_data["links"] = links;
    return LinksAt(links).BeginReduce(x)();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {LinksOf(context).BeginCopy(gradients[0])(), at::Tensor()};
  }
};

// `all` is what ranks have gathered, ranks x ...
struct OwnPartFunction : torch::autograd::Function<OwnPartFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& /*x*/,
                            const at::Tensor& all, std::int64_t dimension, std::int64_t links) {
    context->saved_data["links"] = links;
    context->saved_data["dimension"] = dimension;
    return at::cat(all.unbind(0), dimension);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const TensorLinks& links = LinksOf(context);
    const std::int64_t dimension = context->saved_data["dimension"].toInt();
    const std::int64_t own = gradients[0].size(dimension) / links.parts();
    return {gradients[0].narrow(dimension, links.part() * own, own), at::Tensor(), at::Tensor(),
            at::Tensor()};
  }
};

}  // namespace

at::Tensor TensorLinks::Copy(const at::Tensor& x) {
  return CopyFunction::apply(x, Address(this));
}

at::Tensor TensorLinks::Reduce(const at::Tensor& x) {
  return ReduceFunction::apply(x, Address(this));
}

at::Tensor TensorLinks::Gather(const at::Tensor& x, std::int64_t dimension) {
  const at::Tensor all = BeginGather(x.detach().contiguous())();
  return OwnPartFunction::apply(x, all, dimension < 0 ? dimension + x.dim() : dimension,
                                Address(this));
}

TensorLinks::Pending TensorLinks::BeginCopy(const at::Tensor& x) {
  if (!splits_sequence()) return [x] { return x; };
  return
      [gathered = BeginGather(x.contiguous())] { return at::cat(gathered().unbind(0), kSequence); };
}

TensorLinks::Pending TensorLinks::BeginReduce(const at::Tensor& x) {
  if (!splits_sequence()) return BeginSum(x.contiguous());
  if (x.size(kSequence) % parts() != 0) {
    throw std::invalid_argument(absl::StrCat("cut a sequence of ", x.size(kSequence), " over ",
                                             parts(), " ranks: the parts would not be equal"));
  }
  // ranks x B x T / ranks x ...
  return BeginScatter(at::stack(x.chunk(parts(), kSequence)));
}

}  // namespace muster::trainer
