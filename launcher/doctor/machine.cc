#include "launcher/doctor/machine.h"

#include <sys/timex.h>
#include <sys/utsname.h>

#include <memory>
#include <utility>
#include <vector>

#include <gnu/libc-version.h>
#include <boost/asio/io_context.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

#include "base/program.h"
#include "base/version.h"
#include "launcher/doctor/file_systems.h"
#include "launcher/doctor/gpus.h"
#include "launcher/doctor/limits.h"
#include "launcher/doctor/nccl.h"
#include "launcher/doctor/nccl_library.h"
#include "launcher/doctor/network.h"
#include "worker/process/process.h"
#include "worker/process/process_info.h"

namespace muster::launcher {

Report ExamineMachine(const Examination& examination, const Environment& environment) {
  Report report;
  Judge(ReadNames(), report);
  Judge(ReadNetworks(), environment, examination.has_peers, report);
  Judge(ReadClock(), report);
  Judge(ReadSharedMemory(), report);
  Judge(ReadLimits(), report);
  Judge(ReadControlGroup(), report);
  Judge(ReadGpus(), environment, report);
  const std::string temporary = GetOr(environment, "TMPDIR", "/tmp");
  Judge(ReadDirectory(DirectoryUse::kTemporary, temporary), examination.has_peers, report);
  if (!examination.log_dir.empty() && examination.log_dir != "/dev/null") {
    Judge(ReadDirectory(DirectoryUse::kLogs, examination.log_dir), examination.has_peers, report);
  }
  for (const std::string& path : examination.checkpoints) {
    Judge(ReadDirectory(DirectoryUse::kCheckpoints, path), examination.has_peers, report);
  }
  const Versions versions = ReadVersions(environment);
  const auto bundled = versions.found.find("NCCL");
  Judge(FindNcclLibrary(environment), bundled == versions.found.end() ? "" : bundled->second,
        report);
  Judge(versions, report);
  SortFindings(report);
  return report;
}

namespace {

// 2026-01-01: this program is newer, so an earlier clock is wrong.
constexpr std::chrono::seconds kFirstDay(1767225600);

}  // namespace

ClockFacts ReadClock() {
  ClockFacts clock{.now = std::chrono::system_clock::now()};
  timex state = {};
  clock.is_synchronized = ::adjtimex(&state) != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
  clock.source = std::string(absl::StripSuffix(
      worker::ReadSmallFile("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
      "\n"));
  return clock;
}

void Judge(const ClockFacts& clock, Report& report) {
  const std::string now =
      absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromChrono(clock.now), absl::UTCTimeZone());
  if (clock.now.time_since_epoch() < kFirstDay) {
    report.findings.push_back(
        {.severity = Severity::kError,
         .subject = "clock",
         .what = absl::StrCat("the clock says ", now, " UTC."),
         .why = "The certificates that authenticate nodes are valid for a limited time: no node "
                "can connect.",
         .remedy = "Set the clock, and keep it right with chrony or systemd-timesyncd.",
         .hosts = {}});
  } else {
    report.fine.push_back({"clock", absl::StrCat("it is ", now, " UTC")});
  }
  if (!clock.is_synchronized) {
    report.findings.push_back(
        {.severity = Severity::kNote,
         .subject = "clock",
         .what = "the kernel says that the clock is not synchronized.",
         .why = "It drifts by seconds a day. Logs of several hosts then show events in the wrong "
                "order, and certificates are refused once it is minutes off.",
         .remedy = "Start chrony or systemd-timesyncd; in a container or a virtual machine, the "
                   "host may do it without the kernel's knowledge.",
         .hosts = {}});
  }
  if (clock.source == "hpet" || clock.source == "acpi_pm" || clock.source == "jiffies" ||
      clock.source == "refined-jiffies") {
    report.findings.push_back(
        {.severity = Severity::kWarning,
         .subject = "clock",
         .what = absl::StrCat("the kernel reads the time from ", clock.source, "."),
         .why = "Reading the clock then takes a system call and a microsecond, and CUDA, NCCL and "
                "profilers read it all the time.",
         .remedy = "See `dmesg | grep -i clocksource` for why the processor's counter (tsc) was "
                   "given up; a reboot, or newer firmware, often brings it back.",
         .hosts = {}});
  }
}

namespace {

// Names are PyPI's; that of NCCL's package ends with CUDA's version.
constexpr char kAskPython[] =
    "import sys, importlib.metadata as m\n"
    "print('Python=' + sys.version.split()[0])\n"
    "for d in m.distributions():\n"
    "    n = (d.metadata['Name'] or '').lower()\n"
    "    if n == 'torch': print('PyTorch=' + d.version)\n"
    "    if n.startswith('nvidia-nccl-cu'): print('NCCL=' + d.version)\n";

std::string SystemName() {
  const std::string text = worker::ReadSmallFile("/etc/os-release");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "PRETTY_NAME=\"")) {
      return std::string(absl::StripSuffix(line, "\""));
    }
  }
  return "";
}

void AskPython(const Environment& environment, std::chrono::milliseconds limit,
               std::map<std::string, std::string>& found) {
  boost::asio::io_context io(1);
  std::string output;
  auto command = worker::TimedCommand::Start(
      io,
      {.argv = {GetOr(environment, "PYTHON_EXEC", "python3"), "-c", kAskPython},
       .env = ToBlock(environment),
       .limit = limit},
      [&](worker::TimedCommandResult result) { output = std::move(result.output); });
  if (!command.ok()) return;
  io.run();
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::pair<std::string, std::string> entry = absl::StrSplit(line, absl::MaxSplits('=', 1));
    for (const char* const name : {"Python", "PyTorch", "NCCL"}) {
      if (entry.first == name && !entry.second.empty()) found[name] = entry.second;
    }
  }
}

}  // namespace

Versions ReadVersions(const Environment& environment, std::chrono::milliseconds limit) {
  Versions versions;
  utsname system = {};
  ::uname(&system);
  versions.found["muster"] = base::kVersion;
  versions.found["kernel"] = system.release;
  versions.found["processor"] = system.machine;
  versions.found["glibc"] = ::gnu_get_libc_version();
  if (const std::string name = SystemName(); !name.empty()) versions.found["system"] = name;
  AskPython(environment, limit, versions.found);
  versions.kernel_trouble = std::string(base::CheckKernel().message());
  return versions;
}

void Judge(const Versions& versions, Report& report) {
  if (!versions.kernel_trouble.empty()) {
    report.findings.push_back(
        {.severity = Severity::kError,
         .subject = "versions",
         .what = absl::StrCat(versions.kernel_trouble, "."),
         .why = "`muster run` needs system calls that this kernel, or the container's seccomp "
                "filter, does not allow: it does not start.",
         .remedy = "Run Linux 5.4 or later, and a container runtime that allows its calls.",
         .hosts = {}});
  }
  std::vector<std::string> all;
  for (const auto& [name, version] : versions.found) {
    all.push_back(absl::StrCat(name, " ", version));
    report.versions[name] = version;
  }
  report.fine.push_back({"versions", absl::StrJoin(all, ", ")});
}

}  // namespace muster::launcher
