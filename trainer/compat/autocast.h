// Autocast, whose functions LibTorch 2.4 renamed. Include it only from .cc files: LibTorch's header
// for it includes every operator.
#pragma once

#include <optional>

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

// The type to which it is turned on; nullopt when it is off.
inline std::optional<at::ScalarType> AutocastType(at::DeviceType device) {
#if MUSTER_TORCH_VERSION >= 204
  if (!at::autocast::is_autocast_enabled(device)) return std::nullopt;
  return at::autocast::get_autocast_dtype(device);
#else
  const bool cuda = device == at::kCUDA;
  if (!(cuda ? at::autocast::is_enabled() : at::autocast::is_cpu_enabled())) return std::nullopt;
  return cuda ? at::autocast::get_autocast_gpu_dtype() : at::autocast::get_autocast_cpu_dtype();
#endif
}

}  // namespace muster::trainer::compat
