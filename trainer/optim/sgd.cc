#include "trainer/optim/sgd.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/empty_like.h>

#include "trainer/optim/one_pass.h"

namespace muster::trainer {
namespace {

template <typename T>
T* At(const at::Tensor& tensor, std::int64_t place) {
  return tensor.defined() ? tensor.data_ptr<T>() + place : nullptr;
}

}  // namespace

Sgd::Sgd(const OptimizerOptions& options, std::vector<NamedTensor> parameters)
    : GroupedOptimizer(options, std::move(parameters),
                       options.momentum == 0 ? std::vector<std::string>{}
                                             : std::vector<std::string>{"momentum_buffer"}) {}

void Sgd::Update(Entry& entry, double lr) {
  const at::Tensor& parameter = entry.parameter;
  at::Tensor gradient = parameter.grad().detach();
  const bool first = options_.momentum != 0 && !entry.remembered[0].defined();
  if (options_.path == OptimizerPath::kOnePass && first) {
    entry.remembered[0] = at::empty_like(parameter);
  }
  if (!OnePass(entry, &gradient)) {
    UpdateAsPython(entry, gradient, first, lr);
    return;
  }
  const SgdStep step{.lr = lr,
                     .weight_decay = entry.weight_decay,
                     .momentum = options_.momentum,
                     .nesterov = options_.nesterov,
                     .first = first};
  const at::Tensor momenta = options_.momentum != 0 ? entry.remembered[0] : at::Tensor();
  const auto update = [&]<typename T>(T) {
    InParallel(parameter.numel(), [&](std::int64_t begin, std::int64_t end) {
      SgdOnePass<T>(step, end - begin, At<T>(parameter, begin), At<T>(gradient, begin),
                    At<T>(momenta, begin));
    });
  };
  parameter.scalar_type() == at::kFloat ? update(float{}) : update(double{});
}

// torch/optim/sgd.py, _single_tensor_sgd.
void Sgd::UpdateAsPython(Entry& entry, at::Tensor direction, bool first, double lr) {
  if (entry.weight_decay != 0) direction = direction.add(entry.parameter, entry.weight_decay);
  if (options_.momentum != 0) {
    at::Tensor& momentum = entry.remembered[0];
    if (!first) {
      momentum.mul_(options_.momentum).add_(direction);
    } else if (momentum.defined()) {
      momentum.copy_(direction);
    } else {
      momentum = direction.clone();
    }
    direction = options_.nesterov ? direction.add(momentum, options_.momentum) : momentum;
  }
  entry.parameter.add_(direction, -lr);
}

// The same, as _multi_tensor_sgd has it.
void Sgd::UpdateAlike(Alike& alike, double lr) {
  std::vector<at::Tensor> directions = alike.gradients;
  if (alike.weight_decay != 0) {
    directions = at::_foreach_add(directions, alike.parameters, at::Scalar(alike.weight_decay));
  }
  if (options_.momentum != 0) {
    std::vector<at::Tensor>& momenta = alike.remembered[0];
    if (alike.first) {
      for (std::size_t i = 0; i < momenta.size(); ++i) momenta[i] = directions[i].clone();
    } else {
      at::_foreach_mul_(momenta, at::Scalar(options_.momentum));
      at::_foreach_add_(momenta, directions);
    }
    directions = options_.nesterov
                     ? at::_foreach_add(directions, momenta, at::Scalar(options_.momentum))
                     : momenta;
  }
  at::_foreach_add_(alike.parameters, directions, at::Scalar(-lr));
}

std::vector<std::pair<std::string, OptionValue>> Sgd::Describe(double lr,
                                                               double weight_decay) const {
  return {{"lr", lr},
          {"momentum", options_.momentum},
          {"dampening", 0.0},
          {"weight_decay", weight_decay},
          {"nesterov", options_.nesterov},
          {"maximize", false},
          {"foreach", std::monostate()},
          {"differentiable", false}};
}

}  // namespace muster::trainer
