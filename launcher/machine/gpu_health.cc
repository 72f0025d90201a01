#include "launcher/machine/gpu_health.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "base/text.h"
#include "launcher/machine/nvml.h"

namespace muster::launcher {
namespace {

constexpr unsigned kMemory = 1;  // of /dev/kmsg (Documentation/admin-guide/devices.txt)
constexpr unsigned kKmsg = 11;
constexpr std::size_t kMostRecord = 8192;  // bytes; the kernel's CONSOLE_EXT_LOG_MAX

// Removes "name=value, " from the front of `text`, and returns the value. nullopt if it is not
// there.
std::optional<absl::string_view> TakeMember(absl::string_view name, absl::string_view* text) {
  if (!absl::ConsumePrefix(text, name)) return std::nullopt;
  const std::size_t end = text->find(", ");
  const absl::string_view value = text->substr(0, end);
  text->remove_prefix(end == absl::string_view::npos ? text->size() : end + 2);
  return value;
}

}  // namespace

std::optional<Xid> ReadXid(absl::string_view line) {
  constexpr absl::string_view kStart = "NVRM: Xid (PCI:";
  const std::size_t start = line.find(kStart);
  if (start == absl::string_view::npos) return std::nullopt;
  line.remove_prefix(start + kStart.size());
  const std::size_t end = line.find("): ");
  if (end == absl::string_view::npos) return std::nullopt;
  Xid xid;
  xid.pci_bus_id = absl::AsciiStrToLower(line.substr(0, end));
  if (!absl::StrContains(xid.pci_bus_id, '.')) absl::StrAppend(&xid.pci_bus_id, ".0");
  line.remove_prefix(end + 3);
  const std::size_t digits = line.find_first_not_of("0123456789");
  if (!absl::SimpleAtoi(line.substr(0, digits), &xid.number)) return std::nullopt;
  line.remove_prefix(digits == absl::string_view::npos ? line.size() : digits);
  absl::ConsumePrefix(&line, ", ");
  // Drivers that do not know them write pid='<unknown>', name=<unknown>.
  if (const auto pid = TakeMember("pid=", &line); pid && !absl::SimpleAtoi(*pid, &xid.pid)) {
    xid.pid = 0;
  }
  TakeMember("name=", &line);
  xid.text = std::string(absl::StripAsciiWhitespace(line));
  return xid;
}

std::string Describe(const Xid& xid) {
  return absl::StrCat("Xid ", xid.number, " of GPU ", xid.pci_bus_id,
                      xid.text.empty() ? "" : absl::StrCat(" (", xid.text, ")"));
}

std::string XidsBefore(const std::vector<Xid>& xids, pid_t pid) {
  if (xids.empty()) return "";
  const auto own = std::find_if(xids.begin(), xids.end(),
                                [pid](const Xid& xid) { return pid > 0 && xid.pid == pid; });
  if (own != xids.end()) return absl::StrCat(", after ", Describe(*own));
  return absl::StrCat("; meanwhile the NVIDIA driver reported ", Describe(xids.front()),
                      xids.size() == 1 ? "" : absl::StrCat(" and ", xids.size() - 1, " more"));
}

KernelLog::KernelLog(From from, const std::string& path)
    : file_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
  struct stat facts = {};
  const bool log = file_.valid() && fstat(file_.get(), &facts) == 0 &&
                   (S_ISREG(facts.st_mode) ||
                    (S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(kMemory, kKmsg)));
  // Some containers have a terminal at this path.
  if (!log) file_.reset();
  if (file_.valid() && from == From::kNow) lseek(file_.get(), 0, SEEK_END);
}

std::vector<Xid> KernelLog::ReadNew() {
  std::vector<Xid> found;
  std::string rest;  // the start of a line; the device returns whole records
  std::array<char, kMostRecord> piece;
  while (file_.valid()) {
    const ssize_t bytes = read(file_.get(), piece.data(), piece.size());
    // EPIPE: the kernel has overwritten the next records. The read after it continues behind the
    // gap.
    if (bytes < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (bytes <= 0) break;
    rest.append(piece.data(), static_cast<std::size_t>(bytes));
    const std::size_t end = rest.rfind('\n');
    if (end == std::string::npos) continue;
    for (const absl::string_view line : absl::StrSplit(rest.substr(0, end), '\n')) {
      if (auto xid = ReadXid(line)) found.push_back(*std::move(xid));
    }
    rest.erase(0, end + 1);
  }
  return found;
}

namespace {

// Constants of nvml.h.
constexpr int kGpuSensor = 0;    // NVML_TEMPERATURE_GPU
constexpr int kUncorrected = 1;  // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr int kSinceLoaded = 0;  // NVML_VOLATILE_ECC
constexpr unsigned kText = 96;   // size of names and versions in bytes
struct ReasonBit {
  unsigned long long bit;  // nvmlClocksThrottleReason...
  const char* phrase;
};
// Leaves out the power cap, under which a busy GPU always runs, and clocks set by the user.
constexpr ReasonBit kReasons[] = {{0x8, "slowed by its hardware"},
                                  {0x20, "slowed by its temperature"},
                                  {0x40, "slowed by its hardware because of its temperature"},
                                  {0x80, "slowed by its power supply"}};

// Calls `ask`, whose last parameter is the result. nullopt if the function is missing or fails.
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
  // Remapped rows exist since Ampere, retired pages on older GPUs.
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

// Fills in what NVML reports. Errors are NVML's own.
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
  if (repair_failed) faults.emplace_back("its memory can no longer be repaired");
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
