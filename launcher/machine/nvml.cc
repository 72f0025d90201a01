#include "launcher/machine/nvml.h"

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "launcher/machine/devices.h"

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
  // Newer drivers call them event reasons but keep this symbol.
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
    // dlerror() begins with the library's name.
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

namespace {

namespace fs = std::filesystem;

constexpr unsigned kUuidBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
constexpr unsigned kMigEnabled = 1;  // NVML_DEVICE_MIG_ENABLE

std::string Uuid(const NvmlFunctions& call, NvmlDevice device) {
  char uuid[kUuidBytes] = "";
  return call.uuid(device, uuid, kUuidBytes) == kNvmlSuccess ? uuid : "";
}

absl::StatusOr<GpuList> ListByNvml(const std::string& path) {
  const auto nvml = NvmlLibrary::Load(path);
  if (!nvml.ok()) return nvml.status();
  auto devices = (*nvml)->ListDevices();
  if (!devices.ok()) return devices.status();
  GpuList list{.gpus = {}, .trouble = std::move(devices->trouble)};
  for (const NvmlDevice device : devices->answering) {
    GpuDevice gpu = DescribeGpu(**nvml, device);
    gpu.index = static_cast<int>(list.gpus.size());
    list.gpus.push_back(std::move(gpu));
  }
  return list;
}

// The minor numbers of the device nodes; skips nvidiactl and nvidia-uvm.
std::set<int> DeviceNodes(const std::string& directory) {
  return NumbersIn(directory, "nvidia");
}

// Parses lines such as "GPU UUID: \t GPU-8932f937-...".
GpuDevice ParseInformation(const fs::path& path) {
  GpuDevice gpu;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const absl::string_view key = absl::string_view(line).substr(0, colon);
    const absl::string_view value =
        absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1));
    // The driver writes question marks until the device is first opened.
    if (key == "GPU UUID" && !absl::StrContains(value, '?')) gpu.uuid = std::string(value);
    if (key == "Bus Location") gpu.pci_bus_id = SysfsBusId(std::string(value));
    if (key == "Device Minor" && !absl::SimpleAtoi(value, &gpu.minor)) gpu.minor = -1;
  }
  return gpu;
}

}  // namespace

std::set<int> NumbersIn(const std::string& directory, absl::string_view prefix) {
  std::set<int> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
  while (const dirent* entry = entries == nullptr ? nullptr : ::readdir(entries.get())) {
    absl::string_view rest = entry->d_name;
    if (!absl::ConsumePrefix(&rest, prefix)) continue;
    int number = 0;
    const bool digits = std::all_of(rest.begin(), rest.end(), absl::ascii_isdigit);
    if (digits && absl::SimpleAtoi(rest, &number)) numbers.insert(number);
  }
  return numbers;
}

GpuList ListGpus(const GpuSources& sources) {
  const bool is_wsl = HasWslGpu(sources.device_dir);
  if (CountGpuNodes(sources) == 0 && !is_wsl) return {};
  absl::StatusOr<GpuList> list = ListByNvml(sources.library);
  if (is_wsl && absl::IsNotFound(list.status())) list = ListByNvml(sources.wsl_library);
  if (list.ok()) return *std::move(list);
  const bool absent = absl::IsNotFound(list.status());
  return {ListGpusByFiles(sources), absent ? "" : std::string(list.status().message())};
}

std::vector<GpuDevice> ListGpusByFiles(const GpuSources& sources) {
  const std::set<int> minors = DeviceNodes(sources.device_dir);
  // In a container these files may describe the whole machine, or be missing.
  std::vector<GpuDevice> gpus;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(sources.driver_dir, error)) {
    GpuDevice gpu = ParseInformation(entry.path() / "information");
    if (minors.contains(gpu.minor)) gpus.push_back(std::move(gpu));
  }
  if (gpus.size() != minors.size()) {
    gpus.clear();
    for (const int minor : minors) gpus.push_back({.minor = minor});
  }
  // All have the same length, so text order is address order.
  std::sort(gpus.begin(), gpus.end(), [](const GpuDevice& a, const GpuDevice& b) {
    return a.pci_bus_id != b.pci_bus_id ? a.pci_bus_id < b.pci_bus_id : a.minor < b.minor;
  });
  for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i].index = static_cast<int>(i);
  return gpus;
}

GpuDevice DescribeGpu(const NvmlLibrary& nvml, NvmlDevice device) {
  const NvmlFunctions& call = nvml.call();
  GpuDevice gpu;
  gpu.uuid = Uuid(call, device);
  NvmlPciInfo pci = {};
  if (call.pci_info_v3 && call.pci_info_v3(device, &pci) == kNvmlSuccess) {
    gpu.pci_bus_id = SysfsBusId(pci.bus_id);
  }
  unsigned minor = 0;
  if (call.minor_number && call.minor_number(device, &minor) == kNvmlSuccess) {
    gpu.minor = static_cast<int>(minor);
  }
  // A driver older than MIG lacks these functions; a GPU without MIG answers "not supported".
  unsigned mode = 0;
  unsigned pending = 0;
  unsigned slots = 0;
  if (!call.mig_mode || !call.max_mig_device_count || !call.mig_device_handle_by_index ||
      call.mig_mode(device, &mode, &pending) != kNvmlSuccess || mode != kMigEnabled ||
      call.max_mig_device_count(device, &slots) != kNvmlSuccess) {
    return gpu;
  }
  for (unsigned slot = 0; slot < slots; ++slot) {
    NvmlDevice instance = nullptr;
    // Slots may have gaps.
    if (call.mig_device_handle_by_index(device, slot, &instance) != kNvmlSuccess) continue;
    gpu.mig_uuids.push_back(Uuid(call, instance));
  }
  return gpu;
}

int CountGpuNodes(const GpuSources& sources) {
  return static_cast<int>(DeviceNodes(sources.device_dir).size());
}

std::string SysfsBusId(const std::string& nvml_bus_id) {
  std::string id = absl::AsciiStrToLower(nvml_bus_id);
  // NVML writes the domain with eight digits, the kernel with at least four.
  const std::size_t domain = id.find(':');
  if (domain == std::string::npos) return id;
  std::size_t zeros = 0;
  while (domain - zeros > 4 && id[zeros] == '0') ++zeros;
  return id.substr(zeros);
}

}  // namespace muster::launcher
