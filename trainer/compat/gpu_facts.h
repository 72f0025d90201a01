// What a GPU is, in words, and what LibTorch has taken from it. Where LibTorch is built with CUDA
// this includes CUDA's headers: include it only from .cc files.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#ifdef USE_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#endif
#ifdef USE_C10D_NCCL
#include <nccl.h>
#endif

namespace muster::trainer::compat {

// "NVIDIA H100 80GB HBM3"; empty when `device` is no GPU.
inline std::string GpuName(const at::Device& device) {
#ifdef USE_CUDA
  if (device.is_cuda()) return at::cuda::getDeviceProperties(device.index())->name;
#endif
  (void)device;
  return "";
}

// "NVIDIA H100 80GB HBM3, driver for CUDA 12.8, CUDA 12.4, NCCL 2.22.3"; empty when `device` is no
// GPU. The version of NCCL is the one that this was built for.
inline std::string DescribeGpu(const at::Device& device) {
  std::string text;
#ifdef USE_CUDA
  if (!device.is_cuda()) return text;
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const auto dotted = [](int version) {  // of 12040
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  };
  text = GpuName(device) + ", driver for CUDA " + dotted(driver) + ", CUDA " + dotted(runtime);
#ifdef USE_C10D_NCCL
  text += ", NCCL " + std::to_string(NCCL_MAJOR) + "." + std::to_string(NCCL_MINOR) + "." +
          std::to_string(NCCL_PATCH);
#endif
#endif
  (void)device;
  return text;
}

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
