#include "launcher/machine/nproc.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "base/text.h"
#include "launcher/machine/cpus.h"
#include "launcher/machine/devices.h"

namespace muster::launcher {
namespace {

// The rendezvous' limit for a node (rendezvous/core/session_table.cc).
constexpr int kMostWorkers = 65536;

std::string WhyNotCounted(const Accelerator& device) {
  std::string why = absl::StrCat("finds no NVIDIA GPU, but ", device.kind, " (", device.node,
                                 "), which are not counted yet; give their number");
  if (device.count > 0) absl::StrAppend(&why, ", such as --nproc-per-node=", device.count);
  if (!device.chosen_by.empty()) absl::StrAppend(&why, " for ", device.chosen_by);
  return absl::StrCat(why, ", or --nproc-per-node=cpu");
}

}  // namespace

Machine LookAtMachine() {
  return {.cpus = CountCpus(static_cast<int>(AllowedCpus().size()), CpuQuota()),
          .nvidia_devices = CountGpuNodes(),
          .list_gpus =
              [] {
                static const GpuList list = ListGpus();
                return list;
              },
          .hides_nodes = HasWslGpu("/dev"),
          .find_accelerator =
              [](const Environment& environment) { return FindAccelerator(environment); }};
}

GpuList GpusOf(const Machine& machine) {
  const bool has_any = machine.nvidia_devices > 0 || machine.hides_nodes;
  if (has_any && machine.list_gpus != nullptr) return machine.list_gpus();
  GpuList list;
  for (int index = 0; index < machine.nvidia_devices; ++index) {
    list.gpus.push_back({.index = index});
  }
  return list;
}

std::string GpuTroubleNote(const Machine& machine) {
  const GpuList list = GpusOf(machine);
  if (list.trouble.empty()) return "";
  return absl::StrCat("the NVIDIA driver does not report all GPUs: ", list.trouble,
                      "; muster finds ", base::Count(list.gpus.size(), "GPU"),
                      ", and workers may not be able to use ",
                      list.gpus.size() == 1 ? "it" : "them");
}

int CountGpus(const Machine& machine, const Environment& environment) {
  return static_cast<int>(VisibleDevices(environment, GpusOf(machine).gpus).size());
}

absl::StatusOr<int> ParseNproc(absl::string_view text, const Machine& machine,
                               const Environment& environment) {
  if (text == "cpu") return machine.cpus;
  if (text == "gpu" || text == "auto") {
    const int gpus = CountGpus(machine, environment);
    if (gpus > 0) return gpus;
    const bool hidden = environment.count("CUDA_VISIBLE_DEVICES") > 0;
    const auto other = hidden || machine.find_accelerator == nullptr
                           ? std::nullopt
                           : machine.find_accelerator(environment);
    if (other) return absl::InvalidArgumentError(WhyNotCounted(*other));
    if (text == "auto") return machine.cpus;
    return absl::InvalidArgumentError(
        hidden ? "finds no GPU because CUDA_VISIBLE_DEVICES leaves none (a device named twice "
                 "hides all); change it, or give a number or cpu"
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
  if (count > kMostWorkers) {
    return absl::InvalidArgumentError(
        absl::StrCat("is more than a node may have; give a number up to ", kMostWorkers));
  }
  return count;
}

std::string NprocNote(absl::string_view text, const Machine& machine,
                      const Environment& environment) {
  if (text != "gpu" && text != "auto") return "";
  const int gpus = CountGpus(machine, environment);
  const std::string counts = absl::StrCat("--nproc-per-node=", text, " counts ");
  const bool hidden = environment.count("CUDA_VISIBLE_DEVICES") > 0;
  if (gpus == 0) {
    return absl::StrCat(counts, base::Count(static_cast<std::size_t>(machine.cpus), "CPU"), ", as ",
                        hidden ? "CUDA_VISIBLE_DEVICES leaves no GPU" : "this machine has no GPU");
  }
  const std::string devices = base::Count(static_cast<std::size_t>(gpus), "GPU");
  if (GpusOf(machine).gpus.empty()) {
    return absl::StrCat(counts, devices,
                        " in CUDA_VISIBLE_DEVICES=", GetOr(environment, "CUDA_VISIBLE_DEVICES", ""),
                        ", but this machine has no NVIDIA device; the workers may find none");
  }
  return text == "auto" ? absl::StrCat(counts, devices) : "";
}

}  // namespace muster::launcher
