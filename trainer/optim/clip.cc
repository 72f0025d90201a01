#include "trainer/optim/clip.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "trainer/compat/torch_version.h"

namespace muster::trainer {
namespace {

// Each of `gradients` times the number in `scale`: on a GPU all at once, where LibTorch can (2.1).
void ScaleAll(const std::vector<at::Tensor>& gradients, const at::Tensor& scale) {
#if MUSTER_TORCH_VERSION >= 201
  if (scale.is_cuda()) return at::_foreach_mul_(gradients, scale);
#endif
  for (const at::Tensor& gradient : gradients) gradient.mul_(scale);
}

}  // namespace

// The operations of torch/nn/utils/clip_grad.py in their order.
at::Tensor ClipGradientNorm(const std::vector<NamedTensor>& parameters, double max_norm) {
  constexpr double kAgainstZero = 1e-6;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> norms;
  for (const NamedTensor& parameter : parameters) {
    if (!parameter.tensor.grad().defined()) continue;
    gradients.push_back(parameter.tensor.grad().detach());
    if (!gradients.back().is_cuda()) norms.push_back(at::norm(gradients.back(), 2));
  }
  if (gradients.empty()) return at::zeros({});
  if (norms.size() < gradients.size()) norms = at::_foreach_norm(gradients, 2);
  const at::Tensor norm = at::norm(at::stack(norms), 2);
  const at::Tensor scale = at::clamp_max(max_norm / (norm + kAgainstZero), 1.0);
  // Also when it is 1: asking would make a GPU wait.
  ScaleAll(gradients, scale);
  return norm;
}

}  // namespace muster::trainer
