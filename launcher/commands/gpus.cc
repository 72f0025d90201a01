#include "launcher/commands/gpus.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "base/cli/readers.h"
#include "base/json.h"
#include "base/safe_text.h"
#include "base/text.h"
#include "launcher/cli/command_run.h"
#include "launcher/commands/commands.h"
#include "launcher/machine/devices.h"

namespace muster::launcher {
namespace {

constexpr char kGpus[] = "muster gpus";

struct GpusArgs : base::CommandArgs {
  bool check = false;
  bool json = false;

  absl::Status Complete(base::Variables) const {
    if (!check || !json) return absl::OkStatus();
    return absl::InvalidArgumentError("--check prints nothing, so --json does not go with it");
  }
};

constexpr base::Flag kGpusFlags[] = {
    {.name = "--check",
     .kind = base::Flag::Kind::kSwitch,
     .help = "Say only whether the GPUs that CUDA_VISIBLE_DEVICES leaves are fit, for `muster run "
             "--health-check 'muster gpus --check'`. Memory errors since the last reset and "
             "repairs that wait for one make a GPU unfit; heat and past Xids do not.",
     .set = base::Store<base::ReadSwitch, &GpusArgs::check>},
    {.name = "--json",
     .kind = base::Flag::Kind::kSwitch,
     .help = "Print a JSON object for programs.",
     .set = base::Store<base::ReadSwitch, &GpusArgs::json>},
};

int SayWhetherFit(const GpuHealthReport& report) {
  const absl::Status status = CheckGpus(report, ReadEnvironment(environ));
  return status.ok() ? kExitSuccess : Fail(kGpus, status.message(), kExitNo);
}

int Gpus(const GpusArgs& args) {
  const GpuHealthReport report = ReadGpuHealth();
  if (args.check) return SayWhetherFit(report);
  if (!report.trouble.empty()) Fail(kGpus, report.trouble, kExitSuccess);
  if (report.gpus.empty()) {
    std::fputs("no GPUs\n", stderr);
  } else if (!report.log_readable) {
    std::fputs(
        "muster gpus: no permission to read /dev/kmsg, so faults that the driver reported are not "
        "shown\n",
        stderr);
  }
  if (args.json) return PrintOutput(kGpus, GpusJson(report));
  return report.gpus.empty() ? kExitSuccess : PrintOutput(kGpus, GpuTable(report));
}

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

base::Command GpusCommand() {
  return {
      .name = "gpus",
      .summary = "list the GPUs of this machine and their health",
      .about =
          R"(Lists the GPUs of this machine: index, UUID, PCI address, name, memory in use, temperature, and what
is wrong with them by NVIDIA's management library and the kernel's log: errors of memory that could
not be corrected, repairs that wait for a reset, what slows them down, and faults that the driver
reported (Xids).
)",
      .end =
          R"(Exit codes: 0 done, and with --check all are fit; 1 with --check, one is not fit, does not answer,
or there is none; 2 the command line is wrong; 4 stdout cannot be written.
)",
      .flags = base::WithHelp({kGpusFlags}),
      .run = WithArgs<GpusArgs, Gpus>};
}

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
  return absl::StrCat(base::SafeJson(base::JsonText(object, 2)), "\n");
}

absl::Status CheckGpus(const GpuHealthReport& report, const Environment& environment) {
  if (!report.trouble.empty()) return absl::UnavailableError(report.trouble);
  if (report.gpus.empty()) return absl::UnavailableError("this machine has no NVIDIA GPU");
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
      absl::StrCat(absl::StrJoin(unfit, "; "), "; a GPU reset clears what can be repaired"));
}

}  // namespace muster::launcher
