#include "launcher/doctor/machine.h"

#include <dlfcn.h>
#include <sys/timex.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <gnu/libc-version.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

#include "base/program.h"
#include "base/text.h"
#include "base/version.h"
#include "launcher/doctor/bounded_look.h"
#include "launcher/doctor/network.h"
#include "launcher/machine/devices.h"
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
    report.Add(Severity::kError, "clock", absl::StrCat("the clock says ", now, " UTC."),
               "The certificates that authenticate nodes are valid for a limited time: no node "
               "can connect.",
               "Set the clock, and keep it right with chrony or systemd-timesyncd.");
  } else {
    report.fine.push_back({"clock", absl::StrCat("it is ", now, " UTC")});
  }
  if (!clock.is_synchronized) {
    report.Add(Severity::kNote, "clock", "the kernel says that the clock is not synchronized.",
               "It drifts by seconds a day. Logs of several hosts then show events in the wrong "
               "order, and certificates are refused once it is minutes off.",
               "Start chrony or systemd-timesyncd; in a container or a virtual machine, the "
               "host may do it without the kernel's knowledge.");
  }
  if (clock.source == "hpet" || clock.source == "acpi_pm" || clock.source == "jiffies" ||
      clock.source == "refined-jiffies") {
    report.Add(Severity::kWarning, "clock",
               absl::StrCat("the kernel reads the time from ", clock.source, "."),
               "Reading the clock then takes a system call and a microsecond, and CUDA, NCCL and "
               "profilers read it all the time.",
               "See `dmesg | grep -i clocksource` for why the processor's counter (tsc) was "
               "given up; a reboot, or newer firmware, often brings it back.");
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
  const std::string output =
      OutputOf({.argv = {GetOr(environment, "PYTHON_EXEC", "python3"), "-c", kAskPython},
                .env = ToBlock(environment),
                .limit = limit});
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
    report.Add(Severity::kError, "versions", absl::StrCat(versions.kernel_trouble, "."),
               "`muster run` needs system calls that this kernel, or the container's seccomp "
               "filter, does not allow: it does not start.",
               "Run Linux 5.4 or later, and a container runtime that allows its calls.");
  }
  std::vector<std::string> all;
  for (const auto& [name, version] : versions.found) {
    all.push_back(absl::StrCat(name, " ", version));
    report.versions[name] = version;
  }
  report.fine.push_back({"versions", absl::StrJoin(all, ", ")});
}

namespace {

int CountOnBus(const std::string& pci_dir) {
  int count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(pci_dir, ignored)) {
    const std::string path = entry.path().string();
    // PCI class 3: displays and GPUs without one.
    if (absl::StartsWith(worker::ReadSmallFile(path + "/vendor"), "0x10de") &&
        absl::StartsWith(worker::ReadSmallFile(path + "/class"), "0x03")) {
      ++count;
    }
  }
  return count;
}

std::string NameOf(const GpuHealth& one) {
  return absl::StrCat("GPU ", one.gpu.index,
                      one.name.empty() ? "" : absl::StrCat(" (", one.name, ")"));
}

void JudgeHealth(const GpuHealthReport& health, Report& report) {
  for (const GpuHealth& one : health.gpus) {
    for (const std::string& fault : one.Faults()) {
      report.Add(
          Severity::kError, "GPUs", absl::StrCat(NameOf(one), ": ", fault, "."),
          "A worker that uses it fails or computes wrong results.",
          absl::StrCat("Exclude it with CUDA_VISIBLE_DEVICES or --devices; reset it (`nvidia-smi "
                       "--gpu-reset -i ",
                       one.gpu.index,
                       "`) while no process uses it, and have it replaced if that does not help."));
    }
    for (const std::string& warning : one.Warnings()) {
      report.Add(
          Severity::kWarning, "GPUs", absl::StrCat(NameOf(one), ": ", warning, "."),
          "In a job every rank waits for the slowest one, and what has failed may fail again.",
          "See `nvidia-smi -q` for this GPU, its cooling and its power; `dmesg | grep -i xid` "
          "for the driver's messages.");
    }
  }
}

void JudgeDriver(const GpuFacts& gpus, Report& report) {
  if (!gpus.health.trouble.empty()) {
    report.Add(
        Severity::kError, "GPUs", absl::StrCat(gpus.health.trouble, "."),
        "Where NVIDIA's own library cannot talk to the driver, CUDA mostly cannot either.",
        "Try `nvidia-smi`. A \"version mismatch\" after an update of the driver goes away with a "
        "reboot; a container needs the toolkit's \"utility\" capability "
        "(NVIDIA_DRIVER_CAPABILITIES=compute,utility).");
  }
  if (gpus.on_bus > 0 && gpus.device_nodes == 0) {
    report.Add(
        Severity::kError, "GPUs",
        absl::StrCat("there ", gpus.on_bus == 1 ? "is " : "are ",
                     base::Count(static_cast<std::size_t>(gpus.on_bus), "NVIDIA GPU"),
                     " on the PCI bus, and no device node (/dev/nvidia0)."),
        "No driver has taken the GPUs, or this container was not given them: CUDA finds none.",
        "Load the driver (`modprobe nvidia`, `nvidia-smi`); start the container with --gpus all, "
        "the pod with a limit of nvidia.com/gpu, the step with --gpus-per-node.");
  }
  if (gpus.device_nodes == 0) return;
  if (!gpus.has_uvm) {
    report.Add(
        Severity::kError, "GPUs", "there is no /dev/nvidia-uvm.",
        "CUDA cannot start without it: \"unknown error\" or \"initialization error\".",
        "`modprobe nvidia-uvm && nvidia-modprobe -u -c=0`; give the container that device, too.");
  }
  if (!gpus.has_cuda) {
    report.Add(Severity::kError, "GPUs", "libcuda.so.1 cannot be loaded.",
               "It is the part of the driver that programs call: none of them finds a GPU.",
               "Install the driver's libraries (Debian: libcuda1), or start the container with the "
               "toolkit's \"compute\" capability (NVIDIA_DRIVER_CAPABILITIES=compute,utility).");
  }
}

// Reports a CUDA_VISIBLE_DEVICES that CUDA reads differently from what the user probably meant.
void JudgeVisible(const GpuFacts& gpus, const Environment& environment, Report& report) {
  const auto set = environment.find("CUDA_VISIBLE_DEVICES");
  if (set == environment.end()) return;
  std::vector<GpuDevice> devices;
  for (const GpuHealth& one : gpus.health.gpus) devices.push_back(one.gpu);
  const std::string shown = absl::StrCat("CUDA_VISIBLE_DEVICES=", set->second);
  const std::vector<std::string> visible = VisibleDevices(environment, devices);
  std::size_t meant = 0;
  for (absl::string_view entry : absl::StrSplit(set->second, ',')) {
    entry = absl::StripAsciiWhitespace(entry);
    // -1 is the usual way to hide all entries after it.
    if (entry.empty() || entry == "-1") break;
    ++meant;
  }
  if (devices.empty()) {
    if (meant == 0) return;
    return report.Add(Severity::kWarning, "GPUs",
                      absl::StrCat(shown, " names GPUs, and this machine shows none."),
                      "Workers that are to run on a GPU fail as they start.",
                      "Unset it, or see why there is no GPU: `nvidia-smi`, `ls /dev/nvidia*`.");
  }
  if (visible.size() < meant) {
    return report.Add(
        Severity::kError, "GPUs",
        absl::StrCat(shown, " leaves ", base::Count(visible.size(), "GPU"), " of the ", meant,
                     " that it names (there are ", devices.size(), ")."),
        "To CUDA, an entry that names no device hides itself and all that follow, and one that is "
        "named twice hides all: workers find fewer GPUs than there are workers, \"invalid device "
        "ordinal\".",
        "Name each once, by an index from 0 or a UUID that `muster gpus` shows.");
  }
  if (meant == 0) {
    return report.Add(Severity::kWarning, "GPUs",
                      absl::StrCat(shown, " hides all ", base::Count(devices.size(), "GPU"), "."),
                      "Workers run on the CPU, or fail.", "Unset it to use the GPUs.");
  }
  report.fine.push_back({"GPUs", absl::StrCat(shown, " leaves ", visible.size())});
}

}  // namespace

GpuFacts ReadGpus(const GpuPlaces& places) {
  GpuFacts gpus{.health = ReadGpuHealth(places.sources, places.kernel_log),
                .on_bus = CountOnBus(places.pci_dir),
                .device_nodes = CountGpuNodes(places.sources)};
  std::error_code ignored;
  gpus.has_uvm = std::filesystem::exists(places.sources.device_dir + "/nvidia-uvm", ignored);
  if (void* const cuda = ::dlopen(places.cuda.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
    gpus.has_cuda = true;
    ::dlclose(cuda);
  }
  return gpus;
}

void Judge(const GpuFacts& gpus, const Environment& environment, Report& report) {
  JudgeHealth(gpus.health, report);
  JudgeDriver(gpus, report);
  JudgeVisible(gpus, environment, report);
  if (!gpus.health.driver.empty()) report.versions["NVIDIA driver"] = gpus.health.driver;
  if (gpus.health.gpus.empty()) {
    if (gpus.on_bus == 0) report.fine.push_back({"GPUs", "there are none"});
    return;
  }
  std::vector<std::string> names;
  for (const GpuHealth& one : gpus.health.gpus) {
    names.push_back(one.name.empty() ? "unknown" : one.name);
  }
  report.versions["GPUs"] = absl::StrJoin(names, ", ");
  report.fine.push_back(
      {"GPUs",
       absl::StrCat(
           base::Count(names.size(), "GPU"), ": ", base::ShortList(names),
           gpus.health.driver.empty() ? "" : absl::StrCat("; driver ", gpus.health.driver))});
}

}  // namespace muster::launcher
