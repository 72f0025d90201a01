// --numa-binding: which CPUs each worker may run on. The modes are torchrun's
// (torch/numa/binding.py). numactl is not needed; as with torchrun, memory is not bound.
//
// A worker's CPUs depend on where its GPU is attached; local rank i has the i-th device that
// CUDA_VISIBLE_DEVICES leaves. Of its GPU's NUMA node, a worker gets
//   node          all CPUs
//   socket        all CPUs, and those of the other NUMA nodes of the same socket
//   exclusive     physical cores of its own: the node's cores are split in order among all of the
//                 node's visible GPUs, used or not; the first GPUs get one more if they do not
//                 divide evenly
//   core-complex  the CPUs behind one last-level cache: the node's complexes, those with most
//                 allowed CPUs first, are assigned round-robin to its visible GPUs
// but only CPUs that this process itself may use.
//
// Without a visible GPU (CPU jobs) the workers are spread over the NUMA nodes in blocks: local rank
// i of n goes to node i * nodes / n of those with allowed CPUs, and shares it by the same rules.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "launcher/machine/cpus.h"
#include "launcher/machine/environment.h"

namespace muster::launcher {

struct GpuDevice;

// Where this machine's CPUs are relative to one another and to its PCI devices, from /sys.

// One CPU as the scheduler counts them: a hardware thread.
struct CpuPlace {
  int node = 0;     // NUMA node
  int package = 0;  // socket
  // The lowest CPU of its physical core: CPUs with the same value share a core.
  int core = 0;
  // The lowest CPU behind the same last-level cache (usually L3): CPUs with the same value form a
  // core complex. The CPU itself if the kernel reports no cache, as in some VMs.
  int complex = 0;

  bool operator==(const CpuPlace&) const = default;
};

// The online CPUs by number. A value, so that a test can simulate another machine.
using NumaTopology = std::map<int, CpuPlace>;

// Reads the tree at `sys`. A kernel without NUMA has one node, 0. An error, one line, if the list
// of online CPUs or another file cannot be read.
absl::StatusOr<NumaTopology> ReadNumaTopology(const std::string& sys = "/sys");

// The NUMA node of the PCI device with this address ("0000:3b:00.0"); 0 if the firmware does not
// say (the kernel then writes -1). An error if there is no such device.
absl::StatusOr<int> NumaNodeOfPciDevice(const std::string& pci_bus_id,
                                        const std::string& sys = "/sys");

enum class NumaMode { kNode, kSocket, kExclusive, kCoreComplex };

// The CPUs of each of `nproc` workers by local rank; none is empty. `gpu_nodes` holds the NUMA node
// of each visible GPU in CUDA's order, or is empty for a CPU job. An error is one sentence: a
// worker has no GPU while others have, a node has no allowed CPU, or too few cores for `exclusive`.
absl::StatusOr<std::vector<CpuList>> BindWorkers(NumaMode mode, int nproc,
                                                 const std::vector<int>& gpu_nodes,
                                                 const NumaTopology& topology,
                                                 const CpuList& allowed);

// The same for this machine: reads `sys` and the process's affinity mask. `gpus` are the machine's,
// `environment` is the workers'. Also an error if /sys cannot be read, or if the PCI address of a
// visible GPU is unknown.
absl::StatusOr<std::vector<CpuList>> BindWorkersHere(NumaMode mode, int nproc,
                                                     const Environment& environment,
                                                     const std::vector<GpuDevice>& gpus,
                                                     const std::string& sys = "/sys");

}  // namespace muster::launcher
