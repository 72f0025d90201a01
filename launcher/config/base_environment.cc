#include "launcher/config/base_environment.h"

#include "absl/strings/str_join.h"
#include "launcher/machine/omp.h"
#include "worker/env_names.h"

namespace muster::launcher {

namespace env = worker::env;

Environment BaseEnvironment(const LaunchConfig& config, const Environment& own) {
  Environment base = own;
  if (!config.devices.empty()) base[env::kCudaVisibleDevices] = absl::StrJoin(config.devices, ",");
  if (const auto omp = DefaultOmpThreads(config.nproc_per_node, own)) {
    base[env::kOmpNumThreads] = omp->threads;
  }
  // torchrun's value: when an operation of NCCL has failed, abort the communicators and end the
  // process. Before 2.1 LibTorch by itself did neither, and a worker whose peer was gone hung;
  // since then it ends the process without aborting (3), which a worker may set for itself.
  base.emplace(env::kNcclAsyncErrorHandling, "1");
  return base;
}

}  // namespace muster::launcher
