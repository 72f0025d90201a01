// How many workers a node runs.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/environment.h"

namespace muster::launcher {

// What this machine has. A value, so that a test can stand on another machine.
struct Machine {
  // CPUs this process may run on (its affinity mask), not the CPUs that exist.
  int cpus = 1;
  // NVIDIA devices seen, whatever CUDA_VISIBLE_DEVICES says.
  int nvidia_devices = 0;
};

// Looks at this machine: sched_getaffinity(), and the device nodes /dev/nvidia0, /dev/nvidia1, ...
Machine LookAtMachine();

// GPUs that workers may use: the entries of CUDA_VISIBLE_DEVICES when it is set (set and empty:
// none), else all of the machine's.
int CountGpus(const Machine& machine, const Environment& environment);

// Reads --nproc-per-node: a number from 1, `cpu`, `gpu` or `auto` (GPUs if there are any, else
// CPUs). An error's message is a phrase that follows the text it is about.
absl::StatusOr<int> ParseNproc(absl::string_view text, const Machine& machine,
                               const Environment& environment);

}  // namespace muster::launcher
