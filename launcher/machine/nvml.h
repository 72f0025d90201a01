// The NVIDIA devices of this machine, as values.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::launcher {

// NVIDIA's management library, NVML. Loaded at run time, as machines without GPUs lack it.

// The part of nvml.h that is used here; the ABI of each symbol name is fixed.
using NvmlResult = int;  // nvmlReturn_t
using NvmlDevice = void*;
inline constexpr NvmlResult kNvmlSuccess = 0;
inline constexpr NvmlResult kNvmlNoPermission = 4;

struct NvmlPciInfo {  // nvmlPciInfo_t
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char bus_id[32];
};

struct NvmlMemory {  // nvmlMemory_t, in bytes
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

// NVML's functions, named without "nvmlDevice", in the version used here. Null if the driver is too
// old to have the function.
struct NvmlFunctions {
  NvmlResult (*init_v2)() = nullptr;
  NvmlResult (*shutdown)() = nullptr;
  const char* (*error_string)(NvmlResult) = nullptr;
  NvmlResult (*system_driver_version)(char*, unsigned) = nullptr;
  NvmlResult (*count_v2)(unsigned*) = nullptr;
  NvmlResult (*handle_by_index_v2)(unsigned, NvmlDevice*) = nullptr;
  NvmlResult (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlResult (*name)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlResult (*pci_info_v3)(NvmlDevice, NvmlPciInfo*) = nullptr;
  NvmlResult (*minor_number)(NvmlDevice, unsigned*) = nullptr;
  NvmlResult (*mig_mode)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  NvmlResult (*max_mig_device_count)(NvmlDevice, unsigned*) = nullptr;
  NvmlResult (*mig_device_handle_by_index)(NvmlDevice, unsigned, NvmlDevice*) = nullptr;
  NvmlResult (*memory_info)(NvmlDevice, NvmlMemory*) = nullptr;
  NvmlResult (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlResult (*total_ecc_errors)(NvmlDevice, int, int, unsigned long long*) = nullptr;
  NvmlResult (*remapped_rows)(NvmlDevice, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  NvmlResult (*retired_pages_pending)(NvmlDevice, int*) = nullptr;
  NvmlResult (*throttle_reasons)(NvmlDevice, unsigned long long*) = nullptr;
};

// NVML, loaded and initialized for the object's lifetime. Creates no CUDA context. Not thread-safe.
class NvmlLibrary {
 public:
  // `path` is for dlopen(). kNotFound, in a clause: it cannot be loaded, as in containers that get
  // the GPUs for compute only. kUnavailable: it lacks functions that every driver has had for ten
  // years, or does not initialize ("libnvidia-ml.so.1 does not start: Driver/library version
  // mismatch (NVML error 18)").
  static absl::StatusOr<std::unique_ptr<NvmlLibrary>> Load(const std::string& path);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  const NvmlFunctions& call() const { return functions_; }

  struct Devices {
    std::vector<NvmlDevice> answering;  // in order of PCI address
    std::string trouble;                // why others do not answer, in clauses
  };
  // The devices that this process may open. A container's cgroup may withhold others that NVML
  // counts; CUDA does not number those, and they are not reported as trouble. kUnavailable, in a
  // clause: NVML cannot count the devices.
  absl::StatusOr<Devices> ListDevices() const;
  // "GPU is lost (NVML error 15)".
  std::string ErrorText(NvmlResult result) const;

 private:
  using Handle = std::unique_ptr<void, void (*)(void*)>;
  NvmlLibrary(std::string path, Handle library);

  std::string path_;
  Handle library_;
  NvmlFunctions functions_;
  bool initialized_ = false;
};

struct GpuDevice {
  // Index among the devices that this process may open, in order of PCI address, as nvidia-smi
  // shows it unless a device does not answer. CUDA counts the same way if all GPUs are of one
  // model; otherwise only with CUDA_DEVICE_ORDER=PCI_BUS_ID.
  int index = 0;
  // "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"; empty if unknown.
  std::string uuid;
  // "MIG-..." of each instance of a partitioned device; empty if it is not partitioned or that is
  // unknown.
  std::vector<std::string> mig_uuids;
  // As /sys/bus/pci/devices spells it, "0000:3b:00.0"; empty if unknown.
  std::string pci_bus_id;
  // N of /dev/nvidiaN; -1 if unknown.
  int minor = -1;

  bool operator==(const GpuDevice&) const = default;
};

// Where to look. Tests supply a simulated machine.
struct GpuSources {
  // NVML, for dlopen().
  std::string library = "libnvidia-ml.so.1";
  // The same in WSL2, where the directory is not always in the loader's search path.
  std::string wsl_library = "/usr/lib/wsl/lib/libnvidia-ml.so.1";
  // The directory of the device nodes: nvidia0, nvidia1, ...
  std::string device_dir = "/dev";
  // The driver's own files: one directory per PCI address, with a file `information`.
  std::string driver_dir = "/proc/driver/nvidia/gpus";
};

struct GpuList {
  // The devices that this process may open.
  std::vector<GpuDevice> gpus;
  // Why NVML does not report the devices, or not all of them, in clauses (NvmlLibrary). Empty if it
  // does, if NVML is absent, or if there is no device node.
  std::string trouble;

  bool operator==(const GpuList&) const = default;
};

// Asks NVML, which is loaded for this call only. If it is absent or fails, reads the driver's files
// and the device nodes instead. Without a device node (or WSL2's one for all GPUs) nothing is
// loaded and the list is empty. Creates no CUDA context. Slow (seconds if no process keeps the
// driver initialized): call it only when the result is needed.
GpuList ListGpus(const GpuSources& sources = {});

// The same without NVML.
std::vector<GpuDevice> ListGpusByFiles(const GpuSources& sources);

// NVML's facts about one device, except its index.
GpuDevice DescribeGpu(const NvmlLibrary& nvml, NvmlDevice device);

// The numbers N of all entries of a directory named `prefix`N.
std::set<int> NumbersIn(const std::string& directory, absl::string_view prefix);

// The number of device nodes; reads one directory.
int CountGpuNodes(const GpuSources& sources = {});

// The kernel's spelling of a PCI address: "0000:3b:00.0" for NVML's "00000000:3B:00.0".
std::string SysfsBusId(const std::string& nvml_bus_id);

}  // namespace muster::launcher
