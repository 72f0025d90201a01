#include "launcher/nproc.h"

#include <dirent.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::launcher {
namespace {

int CountAllowedCpus() {
  // The fixed cpu_set_t ends at 1024 CPUs and the call then fails with EINVAL, so the set grows
  // until it fits.
  for (int capacity = CPU_SETSIZE; capacity <= (1 << 20); capacity *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(capacity), [](cpu_set_t* allocated) { CPU_FREE(allocated); });
    const std::size_t size = CPU_ALLOC_SIZE(capacity);
    CPU_ZERO_S(size, set.get());
    if (sched_getaffinity(0, size, set.get()) == 0) return CPU_COUNT_S(size, set.get());
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

int CountNvidiaDevices() {
  const std::unique_ptr<DIR, int (*)(DIR*)> dev(opendir("/dev"), closedir);
  int count = 0;
  while (const dirent* entry = dev ? readdir(dev.get()) : nullptr) {
    absl::string_view name = entry->d_name;
    // nvidiactl and nvidia-uvm stand beside the numbered nodes.
    if (!absl::ConsumePrefix(&name, "nvidia") || name.empty()) continue;
    count += std::all_of(name.begin(), name.end(),
                         [](unsigned char c) { return absl::ascii_isdigit(c); });
  }
  return count;
}

}  // namespace

Machine LookAtMachine() {
  return {.cpus = CountAllowedCpus(), .nvidia_devices = CountNvidiaDevices()};
}

int CountGpus(const Machine& machine, const Environment& environment) {
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (visible == environment.end()) return machine.nvidia_devices;
  int count = 0;
  for (const absl::string_view entry :
       absl::StrSplit(visible->second, ',', absl::SkipWhitespace())) {
    // CUDA itself stops at the first entry it cannot use; -1 is the customary way to say "none".
    if (absl::StartsWith(absl::StripAsciiWhitespace(entry), "-")) break;
    ++count;
  }
  return count;
}

absl::StatusOr<int> ParseNproc(absl::string_view text, const Machine& machine,
                               const Environment& environment) {
  const int gpus = CountGpus(machine, environment);
  if (text == "cpu") return machine.cpus;
  if (text == "auto") return gpus > 0 ? gpus : machine.cpus;
  if (text == "gpu") {
    if (gpus > 0) return gpus;
    return absl::InvalidArgumentError(
        environment.count("CUDA_VISIBLE_DEVICES") > 0
            ? "finds no GPU because CUDA_VISIBLE_DEVICES lists none; change it, or give a number "
              "or cpu"
            : "finds no NVIDIA GPU on this machine; give a number, cpu or auto");
  }
  int count = 0;
  if (!absl::SimpleAtoi(text, &count)) {
    return absl::InvalidArgumentError(
        "is not a number of workers; give a number from 1, or cpu, gpu or auto");
  }
  if (count < 1) {
    return absl::InvalidArgumentError(
        "starts no worker; give a number from 1, or cpu, gpu or auto");
  }
  return count;
}

}  // namespace muster::launcher
