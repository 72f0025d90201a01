#include "launcher/machine/nvml.h"

#include <dirent.h>

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

namespace muster::launcher {
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

}  // namespace

GpuList ListGpus(const GpuSources& sources) {
  if (CountGpuNodes(sources) == 0) return {};
  absl::StatusOr<GpuList> list = ListByNvml(sources.library);
  if (list.ok()) return *std::move(list);
  const bool absent = absl::IsNotFound(list.status());
  return {ListGpusByFiles(sources), absent ? "" : std::string(list.status().message())};
}

std::vector<GpuDevice> ListGpusByFiles(const GpuSources& sources) {
  const std::vector<int> minors = DeviceNodes(sources.device_dir);
  // In a container the files may be those of the whole machine, or not be there.
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
  // A driver before MIG lacks these functions, a GPU without MIG answers "not supported".
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
    // Slots need not be filled in order.
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
  // NVML writes the domain with eight digits, the kernel with as many as it needs, at least four.
  const std::size_t domain = id.find(':');
  if (domain == std::string::npos) return id;
  std::size_t zeros = 0;
  while (domain - zeros > 4 && id[zeros] == '0') ++zeros;
  return id.substr(zeros);
}

}  // namespace muster::launcher
