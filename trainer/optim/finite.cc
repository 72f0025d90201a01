#include "trainer/optim/finite.h"

#include <ATen/Parallel.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>

#include <atomic>

#include "trainer/optim/one_pass.h"

namespace muster::trainer {
namespace {

// Below this many elements a thread costs more than it does.
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
  std::vector<at::Tensor> answers;  // of what is not plain numbers in memory
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

}  // namespace muster::trainer
