// NVIDIA's management library, NVML, loaded while a program runs: a machine without GPUs has none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::launcher {

// The part of nvml.h that is used here; its binary interface is fixed for each symbol name.
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

// The functions, by their names without "nvmlDevice", and with the version that is meant. Those
// that a driver is too old for, or a GPU too old for its driver, are null.
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

// NVML, loaded and initialized for as long as the object lives. Creates no CUDA context. Not
// thread-safe.
class NvmlLibrary {
 public:
  // `path` is for dlopen(). kNotFound, in a clause: it cannot be loaded, as in containers that were
  // given the GPUs to compute and nothing more. kUnavailable: it lacks functions that every driver
  // has had for ten years, or refuses to start ("libnvidia-ml.so.1 does not start: Driver/library
  // version mismatch (NVML error 18)").
  static absl::StatusOr<std::unique_ptr<NvmlLibrary>> Load(const std::string& path);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  const NvmlFunctions& call() const { return functions_; }

  struct Devices {
    std::vector<NvmlDevice> answering;  // in the order of their PCI addresses
    std::string trouble;                // why others do not answer, in clauses
  };
  // The devices that this process may open: a container's cgroup may withhold others that NVML
  // counts, which CUDA does not number and which are no trouble. kUnavailable, in a clause: NVML
  // does not count them.
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

}  // namespace muster::launcher
