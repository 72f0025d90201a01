#include "trainer/parallel/data_parallel.h"

#include <algorithm>
#include <exception>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "trainer/models/batch_norm_layer.h"
#include "trainer/worker/timing.h"

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

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// All dimensions except the channels.
std::vector<std::int64_t> Reduced(const at::Tensor& input) {
  std::vector<std::int64_t> dimensions;
  for (std::int64_t d = 0; d < input.dim(); ++d) {
    if (d != 1) dimensions.push_back(d);
  }
  return dimensions;
}

// C values, shaped to broadcast against `input`.
at::Tensor PerChannel(const at::Tensor& values, const at::Tensor& input) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(input.dim()), 1);
  sizes[1] = values.numel();
  return values.view(sizes);
}

// Half and bfloat16 are too imprecise for sums over a batch.
at::Tensor Wide(const at::Tensor& tensor) {
  const bool narrow = tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
  return narrow ? tensor.to(at::kFloat) : tensor;
}

struct Statistics {
  at::Tensor mean;      // C
  at::Tensor variance;  // C, biased
  at::Tensor count;     // elements per channel, over all ranks: one number
};

// Over all ranks. Each contributes its mean and its sum of squared distances from that, which are
// combined without the cancellation of E[x^2] - E[x]^2 (Chan, Golub and LeVeque, 1979).
Statistics OverRanks(const at::Tensor& input, Group& group) {
  const std::int64_t channels = input.size(1);
  const double own = static_cast<double>(input.numel()) / static_cast<double>(channels);
  const std::vector<std::int64_t> reduced = Reduced(input);
  // A rank without images has weight 0, but 0/0 would remain NaN.
  const at::Tensor mean = input.sum(reduced).div_(std::max(own, 1.0));
  const at::Tensor squares = (input - PerChannel(mean, input)).square_().sum(reduced);
  const at::Tensor mine = at::cat({mean, squares, at::full({1}, own, mean.options())});
  // Not in shared memory: if this pass is a recomputation within the backward pass
  // (trainer/models/autocast.h), another thread may be averaging gradients there. The same applies
  // below.
  const PendingGather gather = group.AllGatherAsync(mine.unsqueeze(0), Use::kActivations);
  {
    const WaitScope waits;
    gather.work->wait();
  }
  const at::Tensor all = at::cat(gather.tensors);  // ranks x (2 C + 1)
  const at::Tensor counts = all.narrow(1, 2 * channels, 1);
  const at::Tensor count = counts.sum();
  const at::Tensor means = all.narrow(1, 0, channels);
  Statistics result;
  result.count = count;
  result.mean = (means * counts).sum(0).div_(count);
  result.variance =
      (all.narrow(1, channels, channels).sum(0) + ((means - result.mean).square_() * counts).sum(0))
          .div_(count);
  return result;
}

// (input - mean) * inverse, where mean and inverse depend on all ranks' inputs.
struct NormaliseFunction : torch::autograd::Function<NormaliseFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& mean, const at::Tensor& inverse,
                            const at::Tensor& count, bool counts, std::int64_t group) {
    const at::Tensor normal = (input - PerChannel(mean, input)) * PerChannel(inverse, input);
    context->save_for_backward({normal, inverse, count});
    context->saved_data["counts"] = counts;
    context->saved_data["group"] = group;
    return normal;
  }

  // With n elements and the normalized input x^, the gradient g becomes inverse * (g - sum(g) / n -
  // x^ sum(g x^) / n), where the sums and n are over all ranks. For rows that do not count, on
  // which the statistics do not depend, it is inverse * g.
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& normal = saved[0];
    const at::Tensor& gradient = gradients[0];
    const std::int64_t channels = normal.size(1);
    const std::vector<std::int64_t> reduced = Reduced(normal);
    const at::Tensor sums = at::cat({gradient.sum(reduced), (gradient * normal).sum(reduced)});
    auto* const group = reinterpret_cast<Group*>(context->saved_data["group"].toInt());
    {
      const WaitScope waits;
      group->AllReduceAsync(sums, Use::kActivations)->wait();
    }

    at::Tensor input = gradient;
    if (context->saved_data["counts"].toBool()) {
      sums.div_(saved[2]);
      const at::Tensor mean = PerChannel(sums.narrow(0, 0, channels), normal);
      const at::Tensor slope = PerChannel(sums.narrow(0, channels, channels), normal);
      input = gradient - mean - normal * slope;
    }
    input = input * PerChannel(saved[1], normal);
    return {input, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor SyncBatchNormTraining(const at::Tensor& input, BatchNormState state, double momentum,
                                 double eps, Group& group, bool counts) {
  const at::Tensor wide = Wide(input);
  Statistics all;
  at::Tensor inverse;
  {
    const at::NoGradGuard no_grad;
    all = OverRanks(counts ? wide : wide.narrow(0, 0, 0), group);
    inverse = (all.variance + eps).rsqrt_();
    if (state.running_mean.defined()) {
      const at::Tensor unbiased = all.count / (all.count - 1).clamp_min(1);
      state.running_mean.mul_(1 - momentum).add_(all.mean, momentum);
      state.running_var.mul_(1 - momentum).add_(all.variance * unbiased, momentum);
    }
  }
  at::Tensor output = NormaliseFunction::apply(wide, all.mean, inverse, all.count, counts,
                                               reinterpret_cast<std::int64_t>(&group));
  // Each rank's own: DDP averages the gradients of weight and bias like all others.
  if (state.weight.defined()) output = output * PerChannel(state.weight, output);
  if (state.bias.defined()) output = output + PerChannel(state.bias, output);
  return output.to(input.scalar_type());
}

BatchNormFunction SyncedBatchNorm::function() {
  return [this](const at::Tensor& input, const BatchNormParts& parts) {
    if (!parts.training || group_.size() == 1) return LocalBatchNorm(input, parts);
    parts.num_batches_tracked.add_(1);
    return SyncBatchNormTraining(input,
                                 {parts.weight, parts.bias, parts.running_mean, parts.running_var},
                                 parts.momentum, parts.epsilon, group_, counts_);
  };
}

}  // namespace muster::trainer
