// What LibTorch has taken from a GPU. Where it is built with CUDA this includes CUDA's headers:
// include it only from .cc files.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#ifdef USE_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace muster::trainer::compat {

// The most bytes that this process has reserved on `device` at once, as Python's
// torch.cuda.max_memory_reserved(); 0 when that is no GPU.
inline std::int64_t PeakReservedBytes(const at::Device& device) {
#ifdef USE_CUDA
  // The first of each array is the sum; the enumeration that says so moved between versions.
  if (device.is_cuda()) {
    return c10::cuda::CUDACachingAllocator::getDeviceStats(device.index()).reserved_bytes[0].peak;
  }
#endif
  (void)device;
  return 0;
}

}  // namespace muster::trainer::compat
