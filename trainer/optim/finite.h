// Whether the numbers in tensors are finite.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "trainer/named_tensor.h"

namespace muster::trainer {

// Whether no element is a NaN or an infinity. Undefined tensors and tensors of integers count as
// finite. Reads the memory once, and waits for the device once.
bool AllFinite(const std::vector<at::Tensor>& tensors);

// The name of the first tensor that is not finite; empty when all are.
std::string FirstNotFinite(const std::vector<NamedTensor>& tensors);

}  // namespace muster::trainer
