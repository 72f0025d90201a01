// What all workers of a node inherit.
#pragma once

#include "launcher/config/launch_config.h"
#include "launcher/environment.h"

namespace muster::launcher {

// The launcher's own environment with what the user chose for the workers: --devices as
// CUDA_VISIBLE_DEVICES, and a default for OMP_NUM_THREADS (omp.h) and for
// TORCH_NCCL_ASYNC_ERROR_HANDLING.
Environment BaseEnvironment(const LaunchConfig& config, const Environment& own);

}  // namespace muster::launcher
