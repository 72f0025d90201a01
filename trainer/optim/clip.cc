#include "trainer/optim/clip.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/stack.h>

namespace muster::trainer {

// The operations of torch/nn/utils/clip_grad.py in their order.
double ClipGradientNorm(const std::vector<NamedTensor>& parameters, double max_norm) {
  constexpr double kAgainstZero = 1e-6;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> norms;
  for (const NamedTensor& parameter : parameters) {
    if (!parameter.tensor.grad().defined()) continue;
    gradients.push_back(parameter.tensor.grad().detach());
    norms.push_back(at::norm(gradients.back(), 2));
  }
  if (gradients.empty()) return 0;
  const at::Tensor norm = at::norm(at::stack(norms), 2);
  const at::Tensor scale = at::clamp_max(max_norm / (norm + kAgainstZero), 1.0);
  // Also when it is 1: asking would make a GPU wait.
  for (at::Tensor& gradient : gradients) gradient.mul_(scale);
  return norm.item<double>();
}

}  // namespace muster::trainer
