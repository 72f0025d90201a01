// How many workers a node runs.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "launcher/machine/devices.h"
#include "launcher/machine/environment.h"
#include "launcher/machine/nvml.h"

namespace muster::launcher {

// This machine's resources. A value, so that a test can simulate another machine.
struct Machine {
  // CPUs that this process can use under its affinity mask and cgroup quotas (CountCpus), not the
  // CPUs that exist.
  int cpus = 1;
  // NVIDIA device nodes, regardless of CUDA_VISIBLE_DEVICES.
  int nvidia_devices = 0;
  // Details of these devices. Slow, so called only when needed (GpusOf()). Null: only the number of
  // devices is known.
  GpuList (*list_gpus)() = nullptr;
  // GPUs have no device nodes of their own (WSL2): only list_gpus finds them.
  bool hides_nodes = false;
  // Finds an accelerator that is not counted (devices.h). Null: there is none.
  std::optional<Accelerator> (*find_accelerator)(const Environment& environment) = nullptr;
};

// Inspects this machine: sched_getaffinity(), CPU quotas, and the device nodes /dev/nvidia0,
// /dev/nvidia1, ... Its list_gpus asks NVML once and caches the result.
Machine LookAtMachine();

// The machine's GPUs, regardless of CUDA_VISIBLE_DEVICES.
GpuList GpusOf(const Machine& machine);

// One line for the user if NVML does not report all GPUs, else empty.
std::string GpuTroubleNote(const Machine& machine);

// The number of GPUs that CUDA_VISIBLE_DEVICES leaves for workers (VisibleDevices() in devices.h).
int CountGpus(const Machine& machine, const Environment& environment);

// Parses --nproc-per-node: a number from 1, `cpu`, `gpu` or `auto`. `auto` means GPUs if there are
// any, else CPUs; it is an error if another accelerator would stay idle. Only `gpu` and `auto` look
// for GPUs. An error's message is a phrase that follows the parsed text.
absl::StatusOr<int> ParseNproc(absl::string_view text, const Machine& machine,
                               const Environment& environment);

// One line for the user: what `auto` counted, or that `gpu` trusted CUDA_VISIBLE_DEVICES although
// this machine shows no GPU. Else empty.
std::string NprocNote(absl::string_view text, const Machine& machine,
                      const Environment& environment);

}  // namespace muster::launcher
