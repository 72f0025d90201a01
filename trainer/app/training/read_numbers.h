// Numbers that a device has computed, where the processor can look at them.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace muster::trainer {

// The values of `numbers`, each a tensor of one number, of any type and all on one device. Waits
// for a GPU, once for all of them.
std::vector<double> ReadNumbers(const std::vector<at::Tensor>& numbers);

}  // namespace muster::trainer
