#include "trainer/optim/ema.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>

#include "trainer/optim/one_pass.h"

namespace muster::trainer {
namespace {

// Below this many elements a thread costs more than it saves.
constexpr std::int64_t kEmaGrain = 32768;

template <typename T>
void FollowInMemory(const at::Tensor& parameter, const at::Tensor& average, double decay) {
  at::parallel_for(0, parameter.numel(), kEmaGrain, [&](std::int64_t begin, std::int64_t end) {
    EmaOnePass(decay, end - begin, parameter.data_ptr<T>() + begin, average.data_ptr<T>() + begin);
  });
}

}  // namespace

Ema::Ema(const std::vector<NamedTensor>& parameters, double decay)
    : parameters_(parameters), decay_(decay) {
  for (const NamedTensor& parameter : parameters) {
    averages_.push_back({parameter.name, parameter.tensor.detach().clone()});
  }
}

void Ema::Restart() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    averages_[i].tensor.copy_(parameters_[i].tensor);
  }
}

void Ema::Update() {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parameters;  // of those that are on a GPU
  std::vector<at::Tensor> averages;
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].tensor;
    const at::Tensor& average = averages_[i].tensor;
    if (!parameter.requires_grad()) continue;  // it stays as it is, and may be of integers
    const bool plain = parameter.device().is_cpu() && parameter.is_non_overlapping_and_dense() &&
                       parameter.strides() == average.strides();
    if (plain && parameter.scalar_type() == at::kFloat) {
      FollowInMemory<float>(parameter, average, decay_);
    } else if (plain && parameter.scalar_type() == at::kDouble) {
      FollowInMemory<double>(parameter, average, decay_);
    } else if (parameter.is_cuda()) {
      parameters.push_back(parameter.detach());
      averages.push_back(average);
    } else {
      average.lerp_(parameter, 1 - decay_);
    }
  }
  if (averages.empty()) return;
  at::_foreach_mul_(averages, at::Scalar(decay_));
  at::_foreach_add_(averages, parameters, at::Scalar(1 - decay_));
}

void Ema::Swap() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const at::Tensor parameter = parameters_[i].tensor.clone();
    parameters_[i].tensor.copy_(averages_[i].tensor);
    averages_[i].tensor.copy_(parameter);
  }
}

}  // namespace muster::trainer
