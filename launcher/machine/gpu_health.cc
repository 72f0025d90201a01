#include "launcher/machine/gpu_health.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "base/phrases.h"
#include "launcher/machine/nvml_library.h"

namespace muster::launcher {
namespace {

// Numbers of nvml.h.
constexpr int kGpuSensor = 0;    // NVML_TEMPERATURE_GPU
constexpr int kUncorrected = 1;  // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr int kSinceLoaded = 0;  // NVML_VOLATILE_ECC
constexpr unsigned kText = 96;   // bytes for names and versions
struct ReasonBit {
  unsigned long long bit;  // nvmlClocksThrottleReason...
  const char* phrase;
};
// Not the power cap, under which a busy GPU always runs, nor what a user has set.
constexpr ReasonBit kReasons[] = {{0x8, "slowed by its hardware"},
                                  {0x20, "slowed by its temperature"},
                                  {0x40, "slowed by its hardware for its temperature"},
                                  {0x80, "slowed by its power supply"}};

// What `ask` says last, if there is such a function and it answers.
template <typename Answer, typename Function, typename... Arguments>
std::optional<Answer> Ask(Function* ask, Arguments... arguments) {
  Answer answer{};
  if (ask == nullptr || ask(arguments..., &answer) != kNvmlSuccess) return std::nullopt;
  return answer;
}

GpuHealth HealthOf(const NvmlLibrary& nvml, NvmlDevice device) {
  const NvmlFunctions& call = nvml.call();
  GpuHealth health{.gpu = DescribeGpu(nvml, device)};
  char name[kText] = "";
  if (call.name && call.name(device, name, kText) == kNvmlSuccess) health.name = name;
  if (const auto memory = Ask<NvmlMemory>(call.memory_info, device)) {
    health.memory_used = memory->used;
    health.memory_total = memory->total;
  }
  health.temperature = Ask<unsigned>(call.temperature, device, kGpuSensor);
  health.uncorrected_errors =
      Ask<unsigned long long>(call.total_ecc_errors, device, kUncorrected, kSinceLoaded);
  // Rows since Ampere, pages before.
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  if (call.remapped_rows &&
      call.remapped_rows(device, &corrected, &uncorrected, &pending, &failed) == kNvmlSuccess) {
    health.repair_pending = pending != 0;
    health.repair_failed = failed != 0;
  }
  if (Ask<int>(call.retired_pages_pending, device).value_or(0) != 0) health.repair_pending = true;
  const auto reasons = Ask<unsigned long long>(call.throttle_reasons, device).value_or(0);
  for (const ReasonBit& reason : kReasons) {
    if ((reasons & reason.bit) != 0) health.slowdowns.emplace_back(reason.phrase);
  }
  return health;
}

// Fills in what NVML knows. Errors as its own.
absl::Status AskNvml(const std::string& path, GpuHealthReport& report) {
  const auto nvml = NvmlLibrary::Load(path);
  if (!nvml.ok()) return nvml.status();
  const NvmlFunctions& call = (*nvml)->call();
  char driver[kText] = "";
  if (call.system_driver_version && call.system_driver_version(driver, kText) == kNvmlSuccess) {
    report.driver = driver;
  }
  const auto devices = (*nvml)->ListDevices();
  if (!devices.ok()) return devices.status();
  report.trouble = devices->trouble;
  for (const NvmlDevice device : devices->answering) {
    GpuHealth health = HealthOf(**nvml, device);
    health.gpu.index = static_cast<int>(report.gpus.size());
    report.gpus.push_back(std::move(health));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> GpuHealth::Faults() const {
  std::vector<std::string> faults;
  if (uncorrected_errors.value_or(0) > 0) {
    faults.push_back(absl::StrCat(
        base::Count(static_cast<std::size_t>(*uncorrected_errors), "uncorrected memory error")));
  }
  if (repair_pending) faults.emplace_back("a repair of its memory waits for a reset");
  if (repair_failed) faults.emplace_back("its memory cannot be repaired any more");
  return faults;
}

std::vector<std::string> GpuHealth::Warnings() const {
  std::vector<std::string> warnings = slowdowns;
  if (!xids.empty()) {
    const Xid& last = xids.back();
    warnings.push_back(absl::StrCat(
        xids.size() == 1 ? "" : absl::StrCat(xids.size(), " Xids in the kernel's log, the last: "),
        "Xid ", last.number, last.text.empty() ? "" : absl::StrCat(" (", last.text, ")")));
  }
  return warnings;
}

GpuHealthReport ReadGpuHealth(const GpuSources& sources, const std::string& kernel_log) {
  GpuHealthReport report;
  if (CountGpuNodes(sources) == 0) return report;
  if (const absl::Status asked = AskNvml(sources.library, report); !asked.ok()) {
    report.trouble = std::string(asked.message());
    for (GpuDevice& gpu : ListGpusByFiles(sources)) report.gpus.push_back({.gpu = std::move(gpu)});
  }
  KernelLog log(KernelLog::From::kOldest, kernel_log);
  report.log_readable = log.readable();
  for (Xid& xid : log.ReadNew()) {
    for (GpuHealth& health : report.gpus) {
      if (health.gpu.pci_bus_id == xid.pci_bus_id) health.xids.push_back(xid);
    }
  }
  return report;
}

}  // namespace muster::launcher
