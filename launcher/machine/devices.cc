#include "launcher/machine/devices.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster::launcher {
namespace {

constexpr char kVariable[] = "CUDA_VISIBLE_DEVICES";
// More than any machine has; a larger index is a typo.
constexpr int kMaxIndex = 4095;

enum class Kind { kIndex, kGpu, kMig };

Kind KindOf(absl::string_view entry) {
  if (absl::StartsWith(entry, "GPU-")) return Kind::kGpu;
  if (absl::StartsWith(entry, "MIG-")) return Kind::kMig;
  return Kind::kIndex;
}

std::vector<absl::string_view> SplitList(absl::string_view text) {
  std::vector<absl::string_view> entries;
  if (absl::StripAsciiWhitespace(text).empty()) return entries;
  for (const absl::string_view entry : absl::StrSplit(text, ',')) {
    entries.push_back(absl::StripAsciiWhitespace(entry));
  }
  return entries;
}

std::optional<int> ParseIndex(absl::string_view text) {
  int index = 0;
  if (text.empty() || !std::all_of(text.begin(), text.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(text, &index) || index > kMaxIndex) {
    return std::nullopt;
  }
  return index;
}

// One entry of CUDA_VISIBLE_DEVICES. CUDA parses an index as strtoul() does: it allows a plus sign
// before the digits and ignores anything after them (torch/cuda/__init__.py,
// _parse_visible_devices).
std::optional<std::string> ReadEntry(absl::string_view text) {
  if (KindOf(text) == Kind::kGpu || KindOf(text) == Kind::kMig) return std::string(text);
  absl::ConsumePrefix(&text, "+");
  const auto end = std::find_if_not(text.begin(), text.end(), absl::ascii_isdigit);
  const auto index = ParseIndex(text.substr(0, static_cast<std::size_t>(end - text.begin())));
  if (!index) return std::nullopt;
  return absl::StrCat(*index);
}

// The full UUID of the MIG instance; null if it is unknown.
const std::string* FindMig(absl::string_view entry, const std::vector<GpuDevice>& gpus) {
  const std::string* found = nullptr;
  for (const GpuDevice& gpu : gpus) {
    for (const std::string& uuid : gpu.mig_uuids) {
      if (!absl::StartsWith(uuid, entry)) continue;
      if (found != nullptr) return nullptr;  // ambiguous
      found = &uuid;
    }
  }
  return found;
}

bool Exists(absl::string_view entry, const std::vector<GpuDevice>& gpus) {
  if (gpus.empty() || FindDevice(entry, gpus) != nullptr) return true;
  const auto knows_mig = [](const GpuDevice& gpu) { return !gpu.mig_uuids.empty(); };
  const auto lacks_uuid = [](const GpuDevice& gpu) { return gpu.uuid.empty(); };
  switch (KindOf(entry)) {
    case Kind::kGpu:  // without NVML the UUIDs may be unknown
      return std::any_of(gpus.begin(), gpus.end(), lacks_uuid);
    case Kind::kMig:  // the same; "MIG-<GPU UUID>/1/0" is older drivers' spelling
      return absl::StrContains(entry, '/') || std::none_of(gpus.begin(), gpus.end(), knows_mig);
    case Kind::kIndex:
      break;
  }
  return false;
}

// Why `entry` names none of `gpus`: a clause to follow "names device X, ".
std::string WhyUnknown(absl::string_view entry, const std::vector<GpuDevice>& gpus) {
  if (KindOf(entry) != Kind::kIndex) {
    return "which is not one device of this machine; `nvidia-smi -L` lists them";
  }
  return gpus.size() == 1
             ? "but this machine has device 0 only"
             : absl::StrCat("but this machine has devices 0 to ", gpus.size() - 1, " only");
}

// The entries of --devices with ranges expanded. Errors are phrases, as in CheckDevices().
absl::StatusOr<std::vector<std::string>> ExpandRanges(absl::string_view text) {
  std::vector<std::string> entries;
  for (const absl::string_view item : SplitList(text)) {
    if (KindOf(item) == Kind::kGpu || KindOf(item) == Kind::kMig) {
      entries.emplace_back(item);
      continue;
    }
    const std::vector<absl::string_view> ends = absl::StrSplit(item, absl::MaxSplits('-', 1));
    const auto first = ParseIndex(absl::StripAsciiWhitespace(ends.front()));
    const auto last = ParseIndex(absl::StripAsciiWhitespace(ends.back()));
    if (!first || !last) {
      return absl::InvalidArgumentError(
          absl::StrCat("has '", item,
                       "', which is not a device; write indices, ranges, GPU- or MIG- UUIDs, "
                       "such as 0-3,6"));
    }
    if (*first > *last) {
      return absl::InvalidArgumentError(absl::StrCat(
          "has the range ", item, ", which runs backwards; write ", *last, "-", *first));
    }
    for (int index = *first; index <= *last; ++index) entries.push_back(absl::StrCat(index));
  }
  if (entries.empty()) {
    return absl::InvalidArgumentError("is empty; write a list such as 0-3,6");
  }
  return entries;
}

}  // namespace

std::vector<std::string> VisibleDevices(const Environment& environment,
                                        const std::vector<GpuDevice>& gpus) {
  std::vector<std::string> visible;
  const auto variable = environment.find(kVariable);
  if (variable == environment.end()) {
    for (const GpuDevice& gpu : gpus) visible.push_back(absl::StrCat(gpu.index));
    return visible;
  }
  std::set<std::string> seen;
  for (const absl::string_view text : SplitList(variable->second)) {
    const auto entry = ReadEntry(text);
    if (!entry || !Exists(*entry, gpus)) break;
    if (!visible.empty() && KindOf(*entry) != KindOf(visible.front())) break;
    if (!seen.insert(CanonicalDevice(*entry, gpus)).second) return {};
    visible.push_back(*entry);
  }
  return visible;
}

const GpuDevice* FindDevice(absl::string_view entry, const std::vector<GpuDevice>& gpus) {
  const Kind kind = KindOf(entry);
  const auto index = ParseIndex(entry);
  const std::string* mig = kind == Kind::kMig ? FindMig(entry, gpus) : nullptr;
  const GpuDevice* found = nullptr;
  for (const GpuDevice& gpu : gpus) {
    const bool matches =
        kind == Kind::kGpu ? absl::StartsWith(gpu.uuid, entry)
        : kind == Kind::kMig
            ? mig != nullptr && std::count(gpu.mig_uuids.begin(), gpu.mig_uuids.end(), *mig) > 0
            : index == gpu.index;
    if (!matches) continue;
    if (found != nullptr) return nullptr;  // a prefix of two UUIDs
    found = &gpu;
  }
  return found;
}

std::string CanonicalDevice(absl::string_view entry, const std::vector<GpuDevice>& gpus) {
  if (KindOf(entry) == Kind::kMig) {
    const std::string* mig = FindMig(entry, gpus);
    return mig != nullptr ? *mig : std::string(entry);
  }
  const GpuDevice* gpu = FindDevice(entry, gpus);
  return gpu != nullptr && !gpu->uuid.empty() ? gpu->uuid : std::string(entry);
}

absl::StatusOr<std::vector<std::string>> CheckDevices(absl::string_view text,
                                                      const std::vector<GpuDevice>& gpus,
                                                      const Environment& environment) {
  auto entries = ExpandRanges(text);
  if (!entries.ok()) return entries.status();
  const auto refuse = [](auto... parts) {
    return absl::InvalidArgumentError(absl::StrCat(parts...));
  };

  std::set<std::string> seen;
  for (const std::string& entry : *entries) {
    if (!Exists(entry, gpus)) {
      return refuse("names device ", entry, ", ", WhyUnknown(entry, gpus));
    }
    if (!seen.insert(CanonicalDevice(entry, gpus)).second) {
      return refuse("names device ", entry, " twice; each worker needs a device of its own");
    }
    if (KindOf(entry) != KindOf(entries->front())) {
      return refuse("mixes ", entries->front(), " and ", entry,
                    ", of which CUDA takes the first kind only; write all as indices or all as "
                    "UUIDs");
    }
  }

  const auto variable = environment.find(kVariable);
  if (variable == environment.end()) return entries;
  std::set<std::string> left;
  for (const std::string& entry : VisibleDevices(environment, gpus)) {
    left.insert(CanonicalDevice(entry, gpus));
  }
  for (const std::string& entry : *entries) {
    if (left.count(CanonicalDevice(entry, gpus)) > 0) continue;
    return refuse("names device ", entry, ", which ", kVariable, "=", variable->second,
                  " excludes; unset it or choose among its devices");
  }
  return entries;
}

std::string DevicesNote(absl::string_view text, const std::vector<GpuDevice>& gpus) {
  if (!gpus.empty()) return "";
  return absl::StrCat("--devices=", text,
                      " is not checked, because this machine has no NVIDIA device");
}

absl::StatusOr<std::string> DeviceOfRank(int local_rank, const Environment& environment) {
  const auto variable = environment.find(kVariable);
  if (variable == environment.end()) return absl::StrCat(local_rank);
  const std::vector<absl::string_view> entries = SplitList(variable->second);
  if (local_rank < static_cast<int>(entries.size())) {
    return std::string(entries[static_cast<std::size_t>(local_rank)]);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--virtual-local-rank finds no device for local rank ", local_rank, ": ", kVariable, "=",
      variable->second, " names ", entries.size(), "; name one for each worker"));
}

namespace {

namespace fs = std::filesystem;

// Sorted names in the directory that consist of `prefix` and a number.
std::vector<std::string> Numbered(const fs::path& directory, absl::string_view prefix) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> nodes(::opendir(directory.c_str()), ::closedir);
  while (const dirent* const entry = nodes == nullptr ? nullptr : ::readdir(nodes.get())) {
    absl::string_view number = entry->d_name;
    if (absl::ConsumePrefix(&number, prefix) && !number.empty() &&
        std::all_of(number.begin(), number.end(), absl::ascii_isdigit)) {
      names.emplace_back(entry->d_name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The driver of a /sys/class/drm/renderD128, such as "amdgpu"; empty if unknown.
std::string DriverOf(const fs::path& device) {
  std::error_code error;
  return fs::read_symlink(device / "device" / "driver", error).filename().string();
}

// One vendor's devices: how they are found, and how users select among them.
struct Maker {
  const char* kind;
  // The name of their device nodes without its number; with `is_sign`, the full name of one node
  // that stands for all devices.
  const char* prefix;
  bool is_sign;
  std::vector<const char*> variables;
};

const std::vector<Maker>& Makers() {
  static const std::vector<Maker> makers = {
      {"AMD GPUs",
       "kfd",
       true,
       {"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}},
      {"Ascend NPUs", "davinci", false, {"ASCEND_RT_VISIBLE_DEVICES"}},
      {"Gaudi accelerators", "hl", false, {"HABANA_VISIBLE_MODULES", "HABANA_VISIBLE_DEVICES"}},
      {"Neuron devices", "neuron", false, {"NEURON_RT_VISIBLE_CORES"}},
      {"Cambricon MLUs", "cambricon_dev", false, {"MLU_VISIBLE_DEVICES"}},
      {"Moore Threads GPUs", "mtgpu.", false, {"MUSA_VISIBLE_DEVICES"}},
      {"TPU chips", "accel", false, {"TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES"}},
      {"Jetson's integrated NVIDIA GPU", "nvhost-gpu", true, {"CUDA_VISIBLE_DEVICES"}},
      {"Jetson's integrated NVIDIA GPU", "nvgpu", true, {"CUDA_VISIBLE_DEVICES"}},
      {"GPUs of Windows (WSL2) that NVML does not report", "dxg", true, {"CUDA_VISIBLE_DEVICES"}},
  };
  return makers;
}

// Applies the user's selection to `found`; false if it hides all devices.
bool Choose(const std::vector<const char*>& variables, const Environment& environment,
            Accelerator& found) {
  for (const char* const variable : variables) {
    const auto value = environment.find(variable);
    if (value == environment.end()) continue;
    const absl::string_view text = absl::StripAsciiWhitespace(value->second);
    if (text.empty() || text == "-1") return false;
    if (text == "all") continue;
    const std::vector<absl::string_view> names = absl::StrSplit(text, ',', absl::SkipEmpty());
    found.count = static_cast<int>(names.size());
    found.chosen_by = absl::StrCat(variable, "=", text);
    return true;
  }
  return true;
}

bool IsSet(const Environment& environment, absl::string_view prefix) {
  return std::any_of(environment.begin(), environment.end(), [prefix](const auto& variable) {
    return absl::StartsWith(variable.first, prefix);
  });
}

}  // namespace

bool HasWslGpu(const std::string& device_dir) {
  return ::access(absl::StrCat(device_dir, "/dxg").c_str(), F_OK) == 0;
}

std::optional<Accelerator> FindAccelerator(const Environment& environment,
                                           const AcceleratorSources& sources) {
  const fs::path dev = sources.device_dir, classes = fs::path(sources.sysfs) / "class";
  const auto found = [&](Accelerator device, const std::vector<const char*>& variables) {
    return Choose(variables, environment, device) ? std::optional(std::move(device)) : std::nullopt;
  };
  for (const Maker& maker : Makers()) {
    const std::vector<std::string> nodes =
        maker.is_sign ? std::vector<std::string>() : Numbered(dev, maker.prefix);
    const std::string node = maker.is_sign ? maker.prefix : nodes.empty() ? "" : nodes.front();
    if (node.empty() || ::access((dev / node).c_str(), F_OK) != 0) continue;
    Accelerator device{.kind = maker.kind,
                       .node = absl::StrCat("/dev/", node),
                       .count = static_cast<int>(nodes.size())};
    if (node == "kfd") {
      // Each GPU has a render node, but so have GPUs of other vendors.
      for (const std::string& render : Numbered(dev / "dri", "renderD")) {
        const std::string driver = DriverOf(classes / "drm" / render);
        if (driver.empty() || driver == "amdgpu") ++device.count;
      }
    }
    return found(std::move(device), maker.variables);
  }
  // Integrated Intel graphics use i915 as well, so i915 counts only if the user selects devices.
  Accelerator intel{.kind = "Intel GPUs"};
  for (const std::string& render : Numbered(dev / "dri", "renderD")) {
    const std::string driver = DriverOf(classes / "drm" / render);
    if (driver != "xe" && !(driver == "i915" && IsSet(environment, "ZE_AFFINITY_MASK"))) continue;
    if (intel.node.empty()) intel.node = absl::StrCat("/dev/dri/", render);
    ++intel.count;
  }
  if (!intel.node.empty()) return found(std::move(intel), {"ZE_AFFINITY_MASK"});
  // Gaudi's nodes since 2023. Laptop NPUs share the directory, but no framework trains on them.
  Accelerator accel{.kind = "accelerators"};
  for (const std::string& node : Numbered(dev / "accel", "accel")) {
    const std::string driver = DriverOf(classes / "accel" / node);
    if (driver == "intel_vpu" || driver == "ivpu" || driver == "amdxdna") continue;
    if (driver == "habanalabs") accel.kind = "Gaudi accelerators";
    if (accel.node.empty()) accel.node = absl::StrCat("/dev/accel/", node);
    ++accel.count;
  }
  if (!accel.node.empty()) {
    return found(std::move(accel), {"HABANA_VISIBLE_MODULES", "HABANA_VISIBLE_DEVICES"});
  }
  // vfio devices may be anything, unless the environment says that they are TPUs.
  if (const auto chips = Numbered(dev / "vfio", ""); !chips.empty() && IsSet(environment, "TPU_")) {
    return found({.kind = "TPU chips",
                  .node = absl::StrCat("/dev/vfio/", chips.front()),
                  .count = static_cast<int>(chips.size())},
                 {"TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES"});
  }
  return std::nullopt;
}

}  // namespace muster::launcher
