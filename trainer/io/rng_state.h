// The state of LibTorch's random numbers, as Python knows it.
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"

namespace muster::trainer {

// What torch.get_rng_state() gives: the state of the CPU's default generator, in a uint8 tensor of
// 5056 elements, a copy. Any thread.
at::Tensor CpuRngState();

// What torch.set_rng_state(state) does: the numbers drawn from here on are those that followed when
// `state` was taken. kInvalidArgument when `state` is no such state; the generator is then as it
// was. Any thread.
absl::Status SetCpuRngState(const at::Tensor& state);

}  // namespace muster::trainer
