#include "launcher/run_entry.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include <spdlog/spdlog.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/devices.h"
#include "launcher/nvml.h"

namespace muster::launcher {
namespace {

// The GPUs that the workers may use. Where nobody has chosen, worker i uses device i, as every
// framework does. NVML, which may take seconds, is asked only if devices are named by UUID.
std::vector<RunDevice> DevicesOf(const LaunchConfig& config, const Environment& base) {
  const auto visible = base.find("CUDA_VISIBLE_DEVICES");
  std::vector<GpuDevice> gpus;
  std::vector<std::string> names;
  if (visible == base.end()) {
    const int used = std::min(CountGpuNodes(), config.nproc_per_node);
    for (int i = 0; i < used; ++i) names.push_back(absl::StrCat(i));
  } else {
    if (absl::StrContains(visible->second, "GPU-") || absl::StrContains(visible->second, "MIG-")) {
      gpus = ListGpus();
    }
    names = VisibleDevices(base, gpus);
  }
  std::vector<RunDevice> devices;
  for (const std::string& name : names) {
    const GpuDevice* const device = FindDevice(name, gpus);
    devices.push_back({name, device == nullptr ? "" : CanonicalDevice(name, gpus)});
  }
  return devices;
}

}  // namespace

RunEntry::RunEntry(const LaunchConfig& config, const Environment& own, const Environment& base,
                   const std::string& log_dir) {
  info_.run_id = config.run_id;
  info_.pid = getpid();
  info_.script = config.program.name;
  info_.devices = DevicesOf(config, base);
  info_.since = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  info_.log_dir = log_dir;
  info_.nproc = config.nproc_per_node;

  const std::vector<std::string> dirs = RunsDirs(own);
  if (!info_.devices.empty()) {
    for (const std::string& conflict : DeviceConflicts(ListRuns(dirs).runs, info_.devices)) {
      spdlog::warn("{}", conflict);
    }
  }
  auto registration = RunRegistration::Register(dirs, info_);
  if (registration.ok()) {
    registration_ = *std::move(registration);
  } else {
    spdlog::warn("muster ps will not show this run: {}",
                 std::string(registration.status().message()));
  }
}

void RunEntry::Show(RunState state) {
  info_.state = state;
  Update();
}

void RunEntry::ShowRound(const rendezvous::Assignment& assignment) {
  info_.node_rank = assignment.group_rank;
  const int last = assignment.base_rank + info_.nproc - 1;
  info_.ranks = absl::StrCat(assignment.base_rank,
                             last == assignment.base_rank ? std::string() : absl::StrCat("-", last),
                             " of ", assignment.world_size);
  Show(RunState::kRunning);
}

void RunEntry::Update() {
  if (registration_ == nullptr) return;
  if (const absl::Status status = registration_->Update(info_); !status.ok()) {
    spdlog::warn("muster ps will not show this run: {}", std::string(status.message()));
    registration_.reset();
  }
}

}  // namespace muster::launcher
