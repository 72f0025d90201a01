#include "launcher/machine/devices.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace muster::launcher {
namespace {

constexpr char kVariable[] = "CUDA_VISIBLE_DEVICES";
// More than any machine has; what is above it is a slip of the finger.
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

// One entry of CUDA_VISIBLE_DEVICES. CUDA reads an index as strtoul() does, with a plus sign before
// the digits or anything behind them (torch/cuda/__init__.py, _parse_visible_devices).
std::optional<std::string> ReadEntry(absl::string_view text) {
  if (KindOf(text) == Kind::kGpu || KindOf(text) == Kind::kMig) return std::string(text);
  absl::ConsumePrefix(&text, "+");
  const auto end = std::find_if_not(text.begin(), text.end(), absl::ascii_isdigit);
  const auto index = ParseIndex(text.substr(0, static_cast<std::size_t>(end - text.begin())));
  if (!index) return std::nullopt;
  return absl::StrCat(*index);
}

// The whole UUID of the MIG instance, if it is known.
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
    case Kind::kGpu:  // without NVML there may be no UUIDs to look it up among
      return std::any_of(gpus.begin(), gpus.end(), lacks_uuid);
    case Kind::kMig:  // the same; and "MIG-<GPU UUID>/1/0", the spelling of older drivers
      return absl::StrContains(entry, '/') || std::none_of(gpus.begin(), gpus.end(), knows_mig);
    case Kind::kIndex:
      break;
  }
  return false;
}

// Why `entry` is none of `gpus`: a clause behind "names device X, ".
std::string WhyUnknown(absl::string_view entry, const std::vector<GpuDevice>& gpus) {
  if (KindOf(entry) != Kind::kIndex) {
    return "which is not one device of this machine; `nvidia-smi -L` lists them";
  }
  return gpus.size() == 1
             ? "but this machine has device 0 only"
             : absl::StrCat("but this machine has devices 0 to ", gpus.size() - 1, " only");
}

// The entries of --devices with their ranges written out. Errors are phrases, as for
// CheckDevices().
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
    return absl::InvalidArgumentError("names no device; write a list such as 0-3,6");
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
    if (found != nullptr) return nullptr;  // the beginning of two UUIDs
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
                  " does not leave; unset it or choose among its devices");
  }
  return entries;
}

std::string DevicesNote(absl::string_view text, const std::vector<GpuDevice>& gpus) {
  if (!gpus.empty()) return "";
  return absl::StrCat("--devices=", text,
                      " is not checked, because this machine shows no NVIDIA device");
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

}  // namespace muster::launcher
