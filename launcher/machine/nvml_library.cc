#include "launcher/machine/nvml_library.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

template <typename Function>
void Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

NvmlFunctions FindFunctions(void* library) {
  NvmlFunctions found;
  Find(library, "nvmlInit_v2", found.init_v2);
  Find(library, "nvmlShutdown", found.shutdown);
  Find(library, "nvmlErrorString", found.error_string);
  Find(library, "nvmlSystemGetDriverVersion", found.system_driver_version);
  Find(library, "nvmlDeviceGetCount_v2", found.count_v2);
  Find(library, "nvmlDeviceGetHandleByIndex_v2", found.handle_by_index_v2);
  Find(library, "nvmlDeviceGetUUID", found.uuid);
  Find(library, "nvmlDeviceGetName", found.name);
  Find(library, "nvmlDeviceGetPciInfo_v3", found.pci_info_v3);
  Find(library, "nvmlDeviceGetMinorNumber", found.minor_number);
  Find(library, "nvmlDeviceGetMigMode", found.mig_mode);
  Find(library, "nvmlDeviceGetMaxMigDeviceCount", found.max_mig_device_count);
  Find(library, "nvmlDeviceGetMigDeviceHandleByIndex", found.mig_device_handle_by_index);
  Find(library, "nvmlDeviceGetMemoryInfo", found.memory_info);
  Find(library, "nvmlDeviceGetTemperature", found.temperature);
  Find(library, "nvmlDeviceGetTotalEccErrors", found.total_ecc_errors);
  Find(library, "nvmlDeviceGetRemappedRows", found.remapped_rows);
  Find(library, "nvmlDeviceGetRetiredPagesPendingStatus", found.retired_pages_pending);
  // Later drivers call them event reasons, and keep this name.
  Find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", found.throttle_reasons);
  return found;
}

}  // namespace

NvmlLibrary::NvmlLibrary(std::string path, Handle library)
    : path_(std::move(path)),
      library_(std::move(library)),
      functions_(FindFunctions(library_.get())) {}

absl::StatusOr<std::unique_ptr<NvmlLibrary>> NvmlLibrary::Load(const std::string& path) {
  Handle handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL),
                [](void* library) { dlclose(library); });
  if (handle == nullptr) {
    // dlerror() begins with the name.
    return absl::NotFoundError(
        absl::StrCat("NVML cannot be loaded: ", dlerror(),
                     "; containers have it with NVIDIA_DRIVER_CAPABILITIES=compute,utility"));
  }
  std::unique_ptr<NvmlLibrary> library(new NvmlLibrary(path, std::move(handle)));
  const NvmlFunctions& call = library->functions_;
  if (!call.init_v2 || !call.shutdown || !call.count_v2 || !call.handle_by_index_v2 || !call.uuid) {
    return absl::UnavailableError(absl::StrCat(path, " is not NVML, or too old"));
  }
  const NvmlResult result = call.init_v2();
  if (result != kNvmlSuccess) {
    return absl::UnavailableError(
        absl::StrCat(path, " does not start: ", library->ErrorText(result)));
  }
  library->initialized_ = true;
  return library;
}

NvmlLibrary::~NvmlLibrary() {
  if (initialized_) functions_.shutdown();
}

absl::StatusOr<NvmlLibrary::Devices> NvmlLibrary::ListDevices() const {
  unsigned count = 0;
  if (const NvmlResult counted = functions_.count_v2(&count); counted != kNvmlSuccess) {
    return absl::UnavailableError(
        absl::StrCat(path_, " does not count its devices: ", ErrorText(counted)));
  }
  Devices devices;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    const NvmlResult got = functions_.handle_by_index_v2(i, &device);
    if (got == kNvmlSuccess) {
      devices.answering.push_back(device);
    } else if (got != kNvmlNoPermission) {
      absl::StrAppend(&devices.trouble, devices.trouble.empty() ? "" : "; ", "device ", i, " of ",
                      count, " does not answer: ", ErrorText(got));
    }
  }
  return devices;
}

std::string NvmlLibrary::ErrorText(NvmlResult result) const {
  const char* const text = functions_.error_string ? functions_.error_string(result) : nullptr;
  return text == nullptr ? absl::StrCat("NVML error ", result)
                         : absl::StrCat(text, " (NVML error ", result, ")");
}

}  // namespace muster::launcher
