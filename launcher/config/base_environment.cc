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
  base.emplace(env::kNcclAsyncErrorHandling, "1");
  return base;
}

}  // namespace muster::launcher
