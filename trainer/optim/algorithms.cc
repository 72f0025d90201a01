#include "trainer/optim/algorithms.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

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

// The same, following _multi_tensor_sgd.
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

namespace {

// Python's x ** 0.5. volatile, as some compilers replace a constant exponent by sqrt.
double PowerOfHalf(double x) {
  const volatile double half = 0.5;
  return std::pow(x, half);
}

}  // namespace

void AdamW::Update(Entry& entry, double lr) {
  const at::Tensor& parameter = entry.parameter;
  for (at::Tensor& remembered : entry.remembered) {
    if (!remembered.defined()) remembered = at::zeros_like(parameter);
  }
  at::Tensor gradient = parameter.grad().detach();
  if (!OnePass(entry, &gradient)) {
    UpdateAsPython(entry, gradient, lr);
    return;
  }
  const AdamWStep step{.lr = lr,
                       .weight_decay = entry.weight_decay,
                       .beta1 = options_.beta1,
                       .beta2 = options_.beta2,
                       .epsilon = options_.epsilon,
                       .number = entry.steps};
  const auto update = [&]<typename T>(T) {
    InParallel(parameter.numel(), [&](std::int64_t begin, std::int64_t end) {
      AdamWOnePass<T>(step, end - begin, parameter.data_ptr<T>() + begin,
                      gradient.data_ptr<T>() + begin, entry.remembered[0].data_ptr<T>() + begin,
                      entry.remembered[1].data_ptr<T>() + begin);
    });
  };
  parameter.scalar_type() == at::kFloat ? update(float{}) : update(double{});
}

// torch/optim/adamw.py, _single_tensor_adamw.
void AdamW::UpdateAsPython(Entry& entry, const at::Tensor& gradient, double lr) {
  at::Tensor& mean = entry.remembered[0];
  at::Tensor& square = entry.remembered[1];
  entry.parameter.mul_(1 - lr * entry.weight_decay);
  if (options_.interpolate_mean) {
    mean.lerp_(gradient, 1 - options_.beta1);
  } else {
    mean.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
  }
  square.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
  const auto number = static_cast<double>(entry.steps);
  const double correction1 = 1 - std::pow(options_.beta1, number);
  const double correction2 = 1 - std::pow(options_.beta2, number);
  const double root = options_.root_is_power ? PowerOfHalf(correction2) : std::sqrt(correction2);
  const at::Tensor divisor = (square.sqrt() / root).add_(options_.epsilon);
  entry.parameter.addcdiv_(mean, divisor, -(lr / correction1));
}

// The same, following _multi_tensor_adamw.
void AdamW::UpdateAlike(Alike& alike, double lr) {
  std::vector<at::Tensor>& means = alike.remembered[0];
  std::vector<at::Tensor>& squares = alike.remembered[1];
  if (alike.first) {
    for (std::size_t i = 0; i < alike.parameters.size(); ++i) {
      means[i] = at::zeros_like(alike.parameters[i]);
      squares[i] = at::zeros_like(alike.parameters[i]);
    }
  }
  at::_foreach_mul_(alike.parameters, at::Scalar(1 - lr * alike.weight_decay));
  at::_foreach_mul_(means, at::Scalar(options_.beta1));
  at::_foreach_add_(means, alike.gradients, at::Scalar(1 - options_.beta1));
  at::_foreach_mul_(squares, at::Scalar(options_.beta2));
  at::_foreach_addcmul_(squares, alike.gradients, alike.gradients, at::Scalar(1 - options_.beta2));
  const auto number = static_cast<double>(alike.steps);
  const double correction1 = 1 - std::pow(options_.beta1, number);
  const double correction2 = 1 - std::pow(options_.beta2, number);
  const std::vector<at::Tensor> divisors = at::_foreach_sqrt(squares);
  at::_foreach_div_(divisors, at::Scalar(std::sqrt(correction2)));
  at::_foreach_add_(divisors, at::Scalar(options_.epsilon));
  at::_foreach_addcdiv_(alike.parameters, means, divisors, at::Scalar(-(lr / correction1)));
}

std::vector<std::pair<std::string, OptionValue>> AdamW::Describe(double lr,
                                                                 double weight_decay) const {
  return {{"lr", lr},
          {"betas", std::pair(options_.beta1, options_.beta2)},
          {"eps", options_.epsilon},
          {"weight_decay", weight_decay},
          {"amsgrad", false},
          {"foreach", std::monostate()},
          {"maximize", false},
          {"capturable", false}};
}

void OwnOptimizer::Update(Entry& entry, double lr) {
  for (at::Tensor& kept : entry.remembered) {
    if (!kept.defined()) kept = at::zeros_like(entry.parameter);
  }
  options_.own.rule->update(entry.parameter.detach(), entry.parameter.grad().detach(),
                            entry.remembered,
                            {.lr = lr, .weight_decay = entry.weight_decay, .number = entry.steps});
}

// The rule may not support several parameters at once.
void OwnOptimizer::UpdateAlike(Alike& alike, double lr) {
  for (std::size_t place = 0; place < alike.parameters.size(); ++place) {
    std::vector<at::Tensor> kept;
    for (std::vector<at::Tensor>& of_all : alike.remembered) {
      if (alike.first) of_all[place] = at::zeros_like(alike.parameters[place]);
      kept.push_back(of_all[place]);
    }
    options_.own.rule->update(
        alike.parameters[place], alike.gradients[place], kept,
        {.lr = lr, .weight_decay = alike.weight_decay, .number = alike.steps});
  }
}

std::vector<std::pair<std::string, OptionValue>> OwnOptimizer::Describe(double lr,
                                                                        double weight_decay) const {
  return {{"lr", lr}, {"weight_decay", weight_decay}};
}

}  // namespace muster::trainer
