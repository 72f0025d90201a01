// How this machine's CPUs are placed relative to each other and to its PCI devices, as /sys tells
// it.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/machine/cpu_list.h"

namespace muster::launcher {

// One CPU: a hardware thread, as the scheduler sees it.
struct CpuPlace {
  int node = 0;     // NUMA node
  int package = 0;  // socket
  // The lowest CPU of the physical core: hardware threads with the same value share a core.
  int core = 0;
  // The lowest CPU of those behind the same highest-level cache (usually L3): CPUs with the same
  // value form a core complex. The CPU itself when the kernel knows of no cache, as in some VMs.
  int complex = 0;

  bool operator==(const CpuPlace&) const = default;
};

// The online CPUs, by number. A value, so that a test can simulate another machine.
using NumaTopology = std::map<int, CpuPlace>;

// Reads the tree at `sys`. A kernel without NUMA has one node, 0. An error, one line, when the tree
// does not say which CPUs there are, or when something in it cannot be read.
absl::StatusOr<NumaTopology> ReadNumaTopology(const std::string& sys = "/sys");

// The NUMA node of the PCI device with this address ("0000:3b:00.0"). Node 0 where the firmware
// does not say (the kernel then writes -1). An error when there is no such device.
absl::StatusOr<int> NumaNodeOfPciDevice(const std::string& pci_bus_id,
                                        const std::string& sys = "/sys");

}  // namespace muster::launcher
