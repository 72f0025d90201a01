// The NVIDIA devices of this machine, as values.
#pragma once

#include <string>
#include <vector>

#include "launcher/machine/nvml_library.h"

namespace muster::launcher {

struct GpuDevice {
  // The place among the devices this process may open, in the order of their PCI addresses: what
  // nvidia-smi shows, unless one of them does not answer. CUDA counts the same way on a machine
  // whose GPUs are all of one model; on others only with CUDA_DEVICE_ORDER=PCI_BUS_ID.
  int index = 0;
  // "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"; empty when unknown.
  std::string uuid;
  // "MIG-..." of each instance into which the device is partitioned; empty when it is not
  // partitioned or that is unknown.
  std::vector<std::string> mig_uuids;
  // As /sys/bus/pci/devices spells it, "0000:3b:00.0"; empty when unknown.
  std::string pci_bus_id;
  // N of /dev/nvidiaN; -1 when unknown.
  int minor = -1;

  bool operator==(const GpuDevice&) const = default;
};

// Where to look. Tests supply a machine of their own.
struct GpuSources {
  // NVML, for dlopen().
  std::string library = "libnvidia-ml.so.1";
  // The directory of the device nodes: nvidia0, nvidia1, ...
  std::string device_dir = "/dev";
  // What the driver itself reports: a directory for each PCI address, with a file `information`.
  std::string driver_dir = "/proc/driver/nvidia/gpus";
};

struct GpuList {
  // The devices that this process may open.
  std::vector<GpuDevice> gpus;
  // Why NVML does not tell of them, or not of all, in clauses (NvmlLibrary); empty: it does, there
  // is none, or no device node.
  std::string trouble;

  bool operator==(const GpuList&) const = default;
};

// Asks NVML, which is loaded for this call only; where it is absent or fails, reads the driver's
// files and the device nodes instead. Without a device node nothing is loaded and the answer is
// empty. Creates no CUDA context. Slow (seconds where no process holds the driver awake): call it
// only when the answer is wanted.
GpuList ListGpus(const GpuSources& sources = {});

// The same without NVML.
std::vector<GpuDevice> ListGpusByFiles(const GpuSources& sources);

// What NVML, once loaded, says of one device, but for its index.
GpuDevice DescribeGpu(const NvmlLibrary& nvml, NvmlDevice device);

// How many device nodes there are, at the cost of reading a directory.
int CountGpuNodes(const GpuSources& sources = {});

// "0000:3b:00.0" for NVML's "00000000:3B:00.0": the kernel's spelling of a PCI address.
std::string SysfsBusId(const std::string& nvml_bus_id);

}  // namespace muster::launcher
