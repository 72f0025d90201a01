// How many workers a node runs.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/environment.h"
#include "launcher/machine/nvml.h"

namespace muster::launcher {

// What this machine has. A value, so that a test can simulate another machine.
struct Machine {
  // CPUs this process may run on (its affinity mask), not the CPUs that exist.
  int cpus = 1;
  // NVIDIA device nodes, whatever CUDA_VISIBLE_DEVICES says.
  int nvidia_devices = 0;
  // Tells more about these devices, but slowly, so it is called only when needed (GpusOf()). Null:
  // only their number is known.
  GpuList (*list_gpus)() = nullptr;
};

// Looks at this machine: sched_getaffinity(), and the device nodes /dev/nvidia0, /dev/nvidia1, ...
// Its list_gpus asks NVML once, and knows the answer afterwards.
Machine LookAtMachine();

// The machine's GPUs, whatever CUDA_VISIBLE_DEVICES says.
GpuList GpusOf(const Machine& machine);

// One line for the user when NVML does not tell of all GPUs of a machine that has some, else empty.
std::string GpuTroubleNote(const Machine& machine);

// The number of GPUs that workers may use: those that CUDA_VISIBLE_DEVICES leaves (VisibleDevices()
// in devices.h).
int CountGpus(const Machine& machine, const Environment& environment);

// Reads --nproc-per-node: a number from 1 up, `cpu`, `gpu` or `auto` (GPUs if there are any, else
// CPUs); only the last two look for GPUs. An error's message is a phrase that follows the text it
// is about.
absl::StatusOr<int> ParseNproc(absl::string_view text, const Machine& machine,
                               const Environment& environment);

// One line for the user when ParseNproc() believed CUDA_VISIBLE_DEVICES about GPUs that this
// machine does not show; else empty.
std::string NprocNote(absl::string_view text, const Machine& machine,
                      const Environment& environment);

}  // namespace muster::launcher
