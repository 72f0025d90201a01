#include "trainer/parallel/data_parallel.h"

#include <algorithm>
#include <exception>
#include <map>
#include <thread>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

namespace muster::trainer {
namespace {

// Copies `from`'s values into `to`. Returns their bytes.
std::int64_t Copy(const std::vector<NamedTensor>& from, const std::vector<NamedTensor>& to) {
  const at::NoGradGuard no_grad;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    at::Tensor target = to[i].tensor;
    target.copy_(from[i].tensor);
    bytes += static_cast<std::int64_t>(target.nbytes());
  }
  return bytes;
}

// Adds `from`'s gradients to `to`'s, and resets them. Returns their bytes.
std::int64_t MoveGradients(const std::vector<NamedTensor>& from,
                           const std::vector<NamedTensor>& to) {
  const at::NoGradGuard no_grad;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    at::Tensor& gradient = from[i].tensor.mutable_grad();
    if (!gradient.defined()) continue;
    bytes += static_cast<std::int64_t>(gradient.nbytes());
    at::Tensor& sum = to[i].tensor.mutable_grad();
    if (sum.defined()) {
      sum.add_(gradient);
    } else {
      sum = gradient;
    }
    gradient.reset();
  }
  return bytes;
}

}  // namespace

DataParallel::DataParallel(std::vector<Replica> replicas) : replicas_(std::move(replicas)) {}

double DataParallel::ForwardBackward(std::int64_t batch_size, const Loss& loss) {
  const auto count = static_cast<std::int64_t>(replicas_.size());
  // As at::chunk: all equal except the last ones.
  const std::int64_t chunk = (batch_size + count - 1) / count;
  const Replica& first = replicas_[0];
  std::int64_t moved_bytes = 0;
  for (std::size_t i = 1; i < replicas_.size(); ++i) {
    moved_bytes += Copy(first.parameters, replicas_[i].parameters);
    Copy(first.buffers, replicas_[i].buffers);
  }

  std::vector<double> losses(replicas_.size());
  std::vector<std::exception_ptr> errors(replicas_.size());
  const auto run = [&](std::int64_t replica) {
    const std::int64_t begin = std::min(batch_size, replica * chunk);
    const std::int64_t end = std::min(batch_size, begin + chunk);
    if (begin == end) return;
    const auto place = static_cast<std::size_t>(replica);
    try {
      const at::Tensor own = loss(static_cast<int>(replica), begin, end);
      own.backward();
      losses[place] = own.item<double>();
    } catch (...) {
      errors[place] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (std::int64_t replica = 1; replica < count; ++replica) threads.emplace_back(run, replica);
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }

  double sum = losses[0];
  for (std::size_t i = 1; i < replicas_.size(); ++i) {
    moved_bytes += MoveGradients(replicas_[i].parameters, first.parameters);
    sum += losses[i];
  }
  std::int64_t model_bytes = 0;
  for (const NamedTensor& parameter : first.parameters) {
    model_bytes += static_cast<std::int64_t>(parameter.tensor.nbytes());
  }
  ++traffic_.steps;
  traffic_.formula_bytes += CentralBytes(static_cast<int>(count), model_bytes);
  traffic_.counted_bytes = traffic_.counted_bytes.value_or(0) + moved_bytes;
  return sum;
}

namespace {

std::size_t TotalBytes(const std::vector<NamedTensor>& tensors) {
  std::size_t bytes = 0;
  for (const NamedTensor& named : tensors) bytes += named.tensor.nbytes();
  return bytes;
}

// Those that learn: averaging equal numbers may round, and the others must not change.
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
  // One exchange per type instead of one per tensor.
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
