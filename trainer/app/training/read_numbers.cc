#include "trainer/app/training/read_numbers.h"

#include <ATen/ops/stack.h>

namespace muster::trainer {

std::vector<double> ReadNumbers(const std::vector<at::Tensor>& numbers) {
  if (numbers.empty()) return {};
  std::vector<at::Tensor> doubles;
  doubles.reserve(numbers.size());
  for (const at::Tensor& number : numbers) {
    doubles.push_back(number.detach().to(at::kDouble).reshape({}));
  }
  const at::Tensor read = at::stack(doubles).cpu();
  const auto* const first = read.data_ptr<double>();
  return std::vector<double>(first, first + read.numel());
}

}  // namespace muster::trainer
