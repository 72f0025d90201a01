#include "launcher/config/base_environment.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_join.h"
#include "launcher/machine/omp.h"
#include "worker/env_names.h"

namespace muster::launcher {

namespace env = worker::env;

namespace {

// A worker's own `muster kv` goes where its agent goes. Only the name of a file is handed on.
void LeaveTokenTo(const rendezvous::TokenSource& token, Environment& base) {
  if (!token.insecure && token.file.empty() && token.tls.empty()) return;
  const auto set_file = [&base](const char* variable, const std::string& file) {
    base.erase(variable);
    std::error_code ignored;
    if (!file.empty()) base[variable] = std::filesystem::absolute(file, ignored);
  };
  set_file(rendezvous::kTokenFileVariable, token.file);
  set_file(rendezvous::kTlsCaVariable, token.tls.ca);
  set_file(rendezvous::kTlsCertVariable, token.tls.certificate);
  set_file(rendezvous::kTlsKeyVariable, token.tls.key);
  base.erase(rendezvous::kInsecureVariable);
  if (token.insecure) base[rendezvous::kInsecureVariable] = "1";
}

}  // namespace

Environment BaseEnvironment(const LaunchConfig& config, const Environment& own) {
  Environment base = own;
  if (!config.devices.empty()) base[env::kCudaVisibleDevices] = absl::StrJoin(config.devices, ",");
  if (const auto omp = DefaultOmpThreads(config.nproc_per_node, own)) {
    base[env::kOmpNumThreads] = omp->threads;
  }
  LeaveTokenTo(config.token, base);
  // torchrun's value: when an operation of NCCL has failed, abort the communicators and end the
  // process. Before 2.1 LibTorch by itself did neither, and a worker whose peer was gone hung;
  // since then it ends the process without aborting (3), which a worker may set for itself.
  base.emplace(env::kNcclAsyncErrorHandling, "1");
  return base;
}

}  // namespace muster::launcher
