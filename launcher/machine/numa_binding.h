// --numa-binding: which CPUs each worker may run on. The modes are torchrun's
// (torch/numa/binding.py). numactl is not needed; as with torchrun, memory is not bound.
//
// A worker's CPUs follow from where its GPU is attached: local rank i has the i-th device that
// CUDA_VISIBLE_DEVICES leaves. Of its GPU's NUMA node, a worker gets
//   node          all CPUs
//   socket        all CPUs, and those of the other NUMA nodes of the same socket
//   exclusive     physical cores of its own: the node's cores are split in order among all of the
//                 node's visible GPUs, whether a worker uses them or not; the first GPUs get one
//                 more where it does not come out even
//   core-complex  the CPUs behind one highest-level cache: the node's complexes, those with most
//                 allowed CPUs first, go round among its visible GPUs
// but never a CPU that this process itself may not use.
//
// Without a visible GPU (jobs on CPUs) the workers are spread over the NUMA nodes in blocks, local
// rank i of n to node i * nodes / n of those with allowed CPUs, and share them in the same way.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/environment.h"
#include "launcher/machine/cpu_list.h"
#include "launcher/machine/numa_topology.h"
#include "launcher/machine/nvml.h"

namespace muster::launcher {

enum class NumaMode { kNode, kSocket, kExclusive, kCoreComplex };

// The CPUs of each of `nproc` workers by local rank; none is empty. `gpu_nodes` holds the NUMA node
// of each visible GPU in CUDA's order, or is empty for a job on CPUs. An error is one sentence: a
// worker without a GPU where others have one, a node without an allowed CPU, or fewer cores than
// `exclusive` needs.
absl::StatusOr<std::vector<CpuList>> BindWorkers(NumaMode mode, int nproc,
                                                 const std::vector<int>& gpu_nodes,
                                                 const NumaTopology& topology,
                                                 const CpuList& allowed);

// The same for this machine: reads `sys` and the process's affinity mask. `gpus` are the machine's,
// `environment` the one the workers get. It is also an error when /sys does not tell, or when the
// PCI address of a visible GPU is not known.
absl::StatusOr<std::vector<CpuList>> BindWorkersHere(NumaMode mode, int nproc,
                                                     const Environment& environment,
                                                     const std::vector<GpuDevice>& gpus,
                                                     const std::string& sys = "/sys");

}  // namespace muster::launcher
