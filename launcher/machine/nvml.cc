#include "launcher/machine/nvml.h"

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

// The part of nvml.h that is used here; its binary interface is fixed for each symbol name.
using NvmlResult = int;  // 0 is success
using NvmlDevice = void*;
constexpr unsigned kUuidBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
constexpr unsigned kMigEnabled = 1;  // NVML_DEVICE_MIG_ENABLE

struct NvmlPciInfo {  // nvmlPciInfo_t
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char bus_id[32];
};

// NVML, loaded and initialized for as long as the object lives.
class Nvml {
 public:
  explicit Nvml(const std::string& path)
      : library_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL),
                 [](void* library) { dlclose(library); }) {
    Find("nvmlInit_v2", init_);
    Find("nvmlShutdown", shutdown_);
    Find("nvmlDeviceGetCount_v2", get_count_);
    Find("nvmlDeviceGetHandleByIndex_v2", get_handle_);
    Find("nvmlDeviceGetUUID", get_uuid_);
    Find("nvmlDeviceGetPciInfo_v3", get_pci_info_);
    Find("nvmlDeviceGetMinorNumber", get_minor_);
    Find("nvmlDeviceGetMigMode", get_mig_mode_);
    Find("nvmlDeviceGetMaxMigDeviceCount", get_max_mig_count_);
    Find("nvmlDeviceGetMigDeviceHandleByIndex", get_mig_handle_);
    const bool complete = init_ && shutdown_ && get_count_ && get_handle_ && get_uuid_;
    initialized_ = complete && init_() == 0;
  }
  ~Nvml() {
    if (initialized_) shutdown_();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Nothing when the library is not there or refuses to work.
  std::optional<std::vector<GpuDevice>> List() const {
    unsigned count = 0;
    if (!initialized_ || get_count_(&count) != 0) return std::nullopt;
    std::vector<GpuDevice> gpus;
    for (unsigned i = 0; i < count; ++i) {
      NvmlDevice device = nullptr;
      // A container's cgroup may withhold devices that NVML counts; CUDA does not number those.
      if (get_handle_(i, &device) != 0) continue;
      GpuDevice gpu = Describe(device);
      gpu.index = static_cast<int>(gpus.size());
      gpus.push_back(std::move(gpu));
    }
    return gpus;
  }

 private:
  template <typename Function>
  void Find(const char* name, Function& function) const {
    if (library_ != nullptr) function = reinterpret_cast<Function>(dlsym(library_.get(), name));
  }

  std::string Uuid(NvmlDevice device) const {
    char uuid[kUuidBytes] = "";
    return get_uuid_(device, uuid, kUuidBytes) == 0 ? uuid : "";
  }

  GpuDevice Describe(NvmlDevice device) const {
    GpuDevice gpu;
    gpu.uuid = Uuid(device);
    NvmlPciInfo pci = {};
    if (get_pci_info_ && get_pci_info_(device, &pci) == 0) gpu.pci_bus_id = SysfsBusId(pci.bus_id);
    unsigned minor = 0;
    if (get_minor_ && get_minor_(device, &minor) == 0) gpu.minor = static_cast<int>(minor);

    // A driver before MIG lacks these functions, a GPU without MIG answers "not supported".
    unsigned mode = 0;
    unsigned pending = 0;
    unsigned slots = 0;
    if (!get_mig_mode_ || !get_max_mig_count_ || !get_mig_handle_ ||
        get_mig_mode_(device, &mode, &pending) != 0 || mode != kMigEnabled ||
        get_max_mig_count_(device, &slots) != 0) {
      return gpu;
    }
    for (unsigned slot = 0; slot < slots; ++slot) {
      NvmlDevice instance = nullptr;
      // Slots need not be filled in order.
      if (get_mig_handle_(device, slot, &instance) != 0) continue;
      gpu.mig_uuids.push_back(Uuid(instance));
    }
    return gpu;
  }

  std::unique_ptr<void, void (*)(void*)> library_;
  bool initialized_ = false;

  NvmlResult (*init_)() = nullptr;
  NvmlResult (*shutdown_)() = nullptr;
  NvmlResult (*get_count_)(unsigned*) = nullptr;
  NvmlResult (*get_handle_)(unsigned, NvmlDevice*) = nullptr;
  NvmlResult (*get_uuid_)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlResult (*get_pci_info_)(NvmlDevice, NvmlPciInfo*) = nullptr;
  NvmlResult (*get_minor_)(NvmlDevice, unsigned*) = nullptr;
  NvmlResult (*get_mig_mode_)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  NvmlResult (*get_max_mig_count_)(NvmlDevice, unsigned*) = nullptr;
  NvmlResult (*get_mig_handle_)(NvmlDevice, unsigned, NvmlDevice*) = nullptr;
};

// The minor numbers of the device nodes, in order.
std::vector<int> DeviceNodes(const std::string& directory) {
  std::vector<int> minors;
  const std::unique_ptr<DIR, int (*)(DIR*)> nodes(::opendir(directory.c_str()), ::closedir);
  while (const dirent* entry = nodes == nullptr ? nullptr : ::readdir(nodes.get())) {
    absl::string_view rest = entry->d_name;
    // nvidiactl and nvidia-uvm stand beside the numbered nodes.
    if (!absl::ConsumePrefix(&rest, "nvidia")) continue;
    int minor = 0;
    const bool digits = std::all_of(rest.begin(), rest.end(), absl::ascii_isdigit);
    if (digits && absl::SimpleAtoi(rest, &minor)) minors.push_back(minor);
  }
  std::sort(minors.begin(), minors.end());
  return minors;
}

// Reads lines such as "GPU UUID: \t GPU-8932f937-...".
GpuDevice ParseInformation(const fs::path& path) {
  GpuDevice gpu;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const absl::string_view key = absl::string_view(line).substr(0, colon);
    const absl::string_view value =
        absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1));
    // The driver writes question marks until somebody has opened the device.
    if (key == "GPU UUID" && !absl::StrContains(value, '?')) gpu.uuid = std::string(value);
    if (key == "Bus Location") gpu.pci_bus_id = SysfsBusId(std::string(value));
    if (key == "Device Minor" && !absl::SimpleAtoi(value, &gpu.minor)) gpu.minor = -1;
  }
  return gpu;
}

// What the driver's files say of the devices that have a node. In a container the files may be
// those of the whole machine, or not be there.
std::vector<GpuDevice> ListByFiles(const GpuSources& sources, const std::vector<int>& minors) {
  std::vector<GpuDevice> gpus;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(sources.driver_dir, error)) {
    GpuDevice gpu = ParseInformation(entry.path() / "information");
    if (std::binary_search(minors.begin(), minors.end(), gpu.minor)) gpus.push_back(std::move(gpu));
  }
  if (gpus.size() != minors.size()) {
    gpus.clear();
    for (const int minor : minors) gpus.push_back({.minor = minor});
  }
  // Equally long in one spelling, so that the texts sort as the addresses do.
  std::sort(gpus.begin(), gpus.end(), [](const GpuDevice& a, const GpuDevice& b) {
    return a.pci_bus_id != b.pci_bus_id ? a.pci_bus_id < b.pci_bus_id : a.minor < b.minor;
  });
  for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i].index = static_cast<int>(i);
  return gpus;
}

}  // namespace

std::vector<GpuDevice> ListGpus(const GpuSources& sources) {
  const std::vector<int> minors = DeviceNodes(sources.device_dir);
  if (minors.empty()) return {};
  if (auto gpus = Nvml(sources.library).List()) return *std::move(gpus);
  return ListByFiles(sources, minors);
}

int CountGpuNodes(const GpuSources& sources) {
  return static_cast<int>(DeviceNodes(sources.device_dir).size());
}

std::string SysfsBusId(const std::string& nvml_bus_id) {
  std::string id = absl::AsciiStrToLower(nvml_bus_id);
  // NVML writes the domain with eight digits, the kernel with as many as it needs, at least four.
  const std::size_t domain = id.find(':');
  if (domain == std::string::npos) return id;
  std::size_t zeros = 0;
  while (domain - zeros > 4 && id[zeros] == '0') ++zeros;
  return id.substr(zeros);
}

}  // namespace muster::launcher
