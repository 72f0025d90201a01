// A tensor with its name in the module, such as "conv1.weight".
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;  // shares storage with the module's tensor
};

}  // namespace muster::trainer
