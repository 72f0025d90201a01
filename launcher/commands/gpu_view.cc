#include "launcher/commands/gpu_view.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "base/json.h"
#include "base/text_table.h"
#include "launcher/machine/devices.h"

namespace muster::launcher {
namespace {

using base::Json;

std::string Gibibytes(std::uint64_t bytes) {
  return absl::StrFormat("%.1f", static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0));
}

std::string MemoryText(const GpuHealth& health) {
  if (!health.memory_used || !health.memory_total) return "";
  return absl::StrCat(Gibibytes(*health.memory_used), " of ", Gibibytes(*health.memory_total),
                      " GiB");
}

std::string StateText(const GpuHealth& health) {
  std::vector<std::string> words = health.Faults();
  const std::vector<std::string> warnings = health.Warnings();
  words.insert(words.end(), warnings.begin(), warnings.end());
  return words.empty() ? "ok" : absl::StrJoin(words, "; ");
}

std::vector<std::string> RowOf(const GpuHealth& health) {
  return {absl::StrCat(health.gpu.index),
          health.gpu.uuid,
          health.gpu.pci_bus_id,
          health.name,
          MemoryText(health),
          health.temperature ? absl::StrCat(*health.temperature, " C") : "",
          StateText(health)};
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json OrNull(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json ObjectOf(const GpuHealth& health) {
  Json object;
  object["index"] = health.gpu.index;
  object["uuid"] = OrNull(health.gpu.uuid);
  object["mig_uuids"] = health.gpu.mig_uuids;
  object["pci_bus_id"] = OrNull(health.gpu.pci_bus_id);
  object["name"] = OrNull(health.name);
  object["memory_used_bytes"] = OrNull(health.memory_used);
  object["memory_total_bytes"] = OrNull(health.memory_total);
  object["temperature_celsius"] = OrNull(health.temperature);
  object["uncorrected_errors"] = OrNull(health.uncorrected_errors);
  object["faults"] = health.Faults();
  object["slowdowns"] = health.slowdowns;
  object["xids"] = Json::array();
  for (const Xid& xid : health.xids) {
    object["xids"].push_back({{"xid", xid.number},
                              {"pid", xid.pid == 0 ? Json() : Json(xid.pid)},
                              {"text", OrNull(xid.text)}});
  }
  return object;
}

}  // namespace

std::string GpuTable(const GpuHealthReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"GPU", "UUID", "BUS", "NAME", "MEMORY", "TEMP", "STATE"}};
  for (const GpuHealth& health : report.gpus) rows.push_back(RowOf(health));
  return base::TextTable(std::move(rows));
}

std::string GpusJson(const GpuHealthReport& report) {
  Json object;
  object["driver"] = OrNull(report.driver);
  object["trouble"] = OrNull(report.trouble);
  object["kernel_log_readable"] = report.log_readable;
  object["gpus"] = Json::array();
  for (const GpuHealth& health : report.gpus) object["gpus"].push_back(ObjectOf(health));
  return absl::StrCat(base::JsonText(object, 2), "\n");
}

absl::Status CheckGpus(const GpuHealthReport& report, const Environment& environment) {
  if (!report.trouble.empty()) return absl::UnavailableError(report.trouble);
  if (report.gpus.empty()) return absl::UnavailableError("this machine shows no NVIDIA GPU");
  std::vector<GpuDevice> gpus;
  for (const GpuHealth& health : report.gpus) gpus.push_back(health.gpu);
  std::vector<int> wanted;
  for (const std::string& entry : VisibleDevices(environment, gpus)) {
    const GpuDevice* const gpu = FindDevice(entry, gpus);
    if (gpu != nullptr) wanted.push_back(gpu->index);
  }
  if (wanted.empty()) {
    return absl::UnavailableError(
        absl::StrCat("CUDA_VISIBLE_DEVICES=", GetOr(environment, "CUDA_VISIBLE_DEVICES", ""),
                     " leaves no GPU of this machine"));
  }
  std::vector<std::string> unfit;
  for (const GpuHealth& health : report.gpus) {
    const std::vector<std::string> faults = health.Faults();
    const bool is_wanted =
        std::find(wanted.begin(), wanted.end(), health.gpu.index) != wanted.end();
    if (faults.empty() || !is_wanted) continue;
    unfit.push_back(absl::StrCat("GPU ", health.gpu.index, " (", health.gpu.pci_bus_id,
                                 ") is not fit: ", absl::StrJoin(faults, ", ")));
  }
  if (unfit.empty()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(absl::StrJoin(unfit, "; "), "; a reset clears what can be repaired"));
}

}  // namespace muster::launcher
