// A tensor and the name its module gives it, such as "conv1.weight".
#pragma once

#include <string>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;  // shares its storage with the module's
};

}  // namespace muster::trainer
