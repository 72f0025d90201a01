#include "trainer/optim/gradients.h"

#include <algorithm>
#include <atomic>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "trainer/compat/torch_version.h"
#include "trainer/optim/one_pass.h"

namespace muster::trainer {
namespace {

// Multiplies each of `gradients` by the number in `scale`: on a GPU all at once, if LibTorch
// supports it (2.1).
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
  // Even if it is 1: checking would synchronize with a GPU.
  ScaleAll(gradients, scale);
  return norm;
}

namespace {

// Below this many elements a thread costs more than it saves.
constexpr std::int64_t kFiniteGrain = 32768;

template <typename T>
bool FiniteInMemory(const at::Tensor& tensor) {
  const T* const values = tensor.data_ptr<T>();
  std::atomic<bool> finite = true;
  at::parallel_for(0, tensor.numel(), kFiniteGrain, [&](std::int64_t begin, std::int64_t end) {
    if (!FiniteOnePass(end - begin, values + begin)) finite = false;
  });
  return finite;
}

}  // namespace

bool AllFinite(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> answers;  // for tensors that are not plain numbers in memory
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || !tensor.is_floating_point()) continue;
    const bool plain = tensor.device().is_cpu() && tensor.is_non_overlapping_and_dense();
    if (plain && tensor.scalar_type() == at::kFloat) {
      if (!FiniteInMemory<float>(tensor)) return false;
    } else if (plain && tensor.scalar_type() == at::kDouble) {
      if (!FiniteInMemory<double>(tensor)) return false;
    } else {
      answers.push_back(at::isfinite(tensor.detach()).all());
    }
  }
  return answers.empty() || at::stack(answers).all().item<bool>();
}

std::string FirstNotFinite(const std::vector<NamedTensor>& tensors) {
  for (const NamedTensor& named : tensors) {
    if (!AllFinite({named.tensor})) return named.name;
  }
  return "";
}

namespace {

// Losses are float32: a larger factor makes even the smallest infinite.
constexpr double kMostScale = 0x1p127;

}  // namespace

LossScaler::LossScaler(double scale, std::int64_t window)
    : window_(window), least_(std::min(scale, 1.0)), state_{.scale = scale} {}

void LossScaler::Update(bool finite) {
  if (!finite) {
    state_ = {.scale = std::max(state_.scale / 2, least_)};
  } else if (++state_.steps_since >= window_) {
    state_ = {.scale = std::min(state_.scale * 2, kMostScale)};
  }
}

}  // namespace muster::trainer
