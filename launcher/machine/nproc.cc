#include "launcher/machine/nproc.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "launcher/machine/cpu_list.h"
#include "launcher/machine/devices.h"

namespace muster::launcher {
namespace {

// What a rendezvous takes of a node (rendezvous/core/join_objection.cc).
constexpr int kMostWorkers = 65536;

}  // namespace

Machine LookAtMachine() {
  return {.cpus = static_cast<int>(AllowedCpus().size()),
          .nvidia_devices = CountGpuNodes(),
          .list_gpus = [] {
            static const GpuList list = ListGpus();
            return list;
          }};
}

GpuList GpusOf(const Machine& machine) {
  if (machine.nvidia_devices > 0 && machine.list_gpus != nullptr) return machine.list_gpus();
  GpuList list;
  for (int index = 0; index < machine.nvidia_devices; ++index) {
    list.gpus.push_back({.index = index});
  }
  return list;
}

std::string GpuTroubleNote(const Machine& machine) {
  const GpuList list = GpusOf(machine);
  if (list.trouble.empty()) return "";
  return absl::StrCat("the NVIDIA driver does not tell of all GPUs: ", list.trouble,
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
    if (text == "auto") return machine.cpus;
    return absl::InvalidArgumentError(
        environment.count("CUDA_VISIBLE_DEVICES") > 0
            ? "finds no GPU because CUDA_VISIBLE_DEVICES leaves none (a device named twice hides "
              "all); change it, or give a number or cpu"
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
  if ((text != "gpu" && text != "auto") || machine.nvidia_devices > 0) return "";
  const int gpus = CountGpus(machine, environment);
  if (gpus == 0) return "";
  return absl::StrCat("--nproc-per-node=", text, " counts ",
                      base::Count(static_cast<std::size_t>(gpus), "GPU"),
                      " in CUDA_VISIBLE_DEVICES=", GetOr(environment, "CUDA_VISIBLE_DEVICES", ""),
                      ", but this machine shows no NVIDIA device; the workers may find none");
}

}  // namespace muster::launcher
