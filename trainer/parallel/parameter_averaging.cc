#include "trainer/parallel/parameter_averaging.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

namespace muster::trainer {
namespace {

std::size_t TotalBytes(const std::vector<NamedTensor>& tensors) {
  std::size_t bytes = 0;
  for (const NamedTensor& named : tensors) bytes += named.tensor.nbytes();
  return bytes;
}

// Those that learn: a mean of equal numbers may be rounded, and others must stay as they are.
std::vector<NamedTensor> Learning(std::vector<NamedTensor> parameters) {
  std::erase_if(parameters, [](const NamedTensor& one) { return !one.tensor.requires_grad(); });
  return parameters;
}

}  // namespace

ParameterAveraging::ParameterAveraging(const std::vector<NamedTensor>& parameters,
                                       const std::vector<NamedTensor>& buffers, Group& group,
                                       std::int64_t period)
    : parameters_(Learning(parameters)),
      buffers_(buffers),
      group_(group),
      before_(group.traffic(Use::kParameters)),
      period_(std::max<std::int64_t>(1, period)) {
  group.PrepareAllReduce(TotalBytes(parameters_));
  std::vector<at::Tensor> state;
  for (const auto* tensors : {&parameters, &buffers}) {
    for (const NamedTensor& named : *tensors) state.push_back(named.tensor.detach());
  }
  group.Broadcast(state, /*root=*/0, Use::kOther);
}

bool ParameterAveraging::AfterStep() {
  ++steps_;
  buffers_differ_ = true;
  parameters_differ_ = steps_ % period_ != 0;
  if (parameters_differ_) return false;
  Average(parameters_);
  return true;
}

void ParameterAveraging::Finish() {
  if (std::exchange(parameters_differ_, false)) Average(parameters_);
  if (std::exchange(buffers_differ_, false)) Average(buffers_);
}

void ParameterAveraging::Average(const std::vector<NamedTensor>& named) {
  const at::NoGradGuard no_grad;
  // One exchange for each type instead of one for each tensor.
  std::map<at::ScalarType, std::vector<at::Tensor>> by_type;
  for (const NamedTensor& one : named) {
    if (one.tensor.is_floating_point()) by_type[one.tensor.scalar_type()].push_back(one.tensor);
  }
  for (const auto& [type, tensors] : by_type) {
    std::vector<at::Tensor> flat;
    for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
    at::Tensor all = at::cat(flat);
    group_.AllReduce(all, Use::kParameters, 1.0 / group_.size());
    std::int64_t at = 0;
    for (at::Tensor tensor : tensors) {
      tensor.copy_(all.narrow(0, at, tensor.numel()).view(tensor.sizes()));
      at += tensor.numel();
    }
  }
}

Traffic ParameterAveraging::traffic() const {
  Traffic traffic = group_.traffic(Use::kParameters).Since(before_);
  traffic.steps = steps_;
  return traffic;
}

}  // namespace muster::trainer
