#include "launcher/doctor/versions.h"

#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/kernel.h"
#include "base/version.h"
#include "worker/process/cgroup_paths.h"
#include "worker/process/timed_command.h"

namespace muster::launcher {
namespace {

// The names are those of PyPI; NCCL's has CUDA's version at its end.
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
         .why = "`muster run` watches its workers with what this kernel, or the container's filter "
                "of system calls, does not have: it does not start.",
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
