// Autocast, which LibTorch 2.4 gave other names. Include it only from .cc files: its header of
// LibTorch includes every operator.
#pragma once

#include <ATen/autocast_mode.h>

#include "trainer/compat/torch_version.h"

namespace muster::trainer::compat {

// Lets operators of this thread on `device`, kCPU or kCUDA, compute in bfloat16 where they gain
// from it, or stops it.
inline void SetBf16Autocast(at::DeviceType device, bool on) {
#if MUSTER_TORCH_VERSION >= 204
  at::autocast::set_autocast_dtype(device, at::kBFloat16);
  at::autocast::set_autocast_enabled(device, on);
#else
  // Before 2.4 each kind of device has functions of its own.
  if (device == at::kCUDA) {
    at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
    at::autocast::set_enabled(on);
  } else {
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
    at::autocast::set_cpu_enabled(on);
  }
#endif
}

}  // namespace muster::trainer::compat
