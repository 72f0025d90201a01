// Autocast, whose functions LibTorch 2.4 renamed. Include it only from .cc files: LibTorch's header
// for it includes every operator.
#pragma once

#include <ATen/autocast_mode.h>

#include "trainer/compat/torch_version.h"

namespace muster::trainer::compat {

// Turns autocast to `type` on or off for this thread's operators on `device` (kCPU or kCUDA).
inline void SetAutocast(at::DeviceType device, at::ScalarType type, bool on) {
#if MUSTER_TORCH_VERSION >= 204
  at::autocast::set_autocast_dtype(device, type);
  at::autocast::set_autocast_enabled(device, on);
#else
  // Before 2.4 each device type has its own functions.
  if (device == at::kCUDA) {
    at::autocast::set_autocast_gpu_dtype(type);
    at::autocast::set_enabled(on);
  } else {
    at::autocast::set_autocast_cpu_dtype(type);
    at::autocast::set_cpu_enabled(on);
  }
#endif
}

}  // namespace muster::trainer::compat
