// The state of LibTorch's random number generator, in Python's format.
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"

namespace muster::trainer {

// What torch.get_rng_state() returns: a copy of the state of the default CPU generator, a uint8
// tensor of 5056 elements. Thread-safe.
at::Tensor CpuRngState();

// What torch.set_rng_state(state) does: the next random numbers are those that followed when
// `state` was taken. kInvalidArgument, with the generator unchanged, when `state` is not a
// generator's state. Thread-safe.
absl::Status SetCpuRngState(const at::Tensor& state);

}  // namespace muster::trainer
