#include "trainer/optim/adamw.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "trainer/optim/one_pass.h"

namespace muster::trainer {
namespace {

// Python's x ** 0.5. Some compilers take sqrt where they see the exponent, hence the volatile.
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

// The same, as _multi_tensor_adamw has it.
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

}  // namespace muster::trainer
