#include "launcher/commands/gpus.h"

#include <unistd.h>

#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "launcher/commands/answer.h"
#include "launcher/commands/gpu_view.h"
#include "launcher/environment.h"
#include "launcher/machine/gpu_health.h"
#include "launcher/report/exit_code.h"

namespace muster::launcher {
namespace {

constexpr int kExitUnfit = 1;

constexpr char kGpusHelp[] =
    R"(Usage: muster gpus [--check|--json]

Lists the GPUs of this machine: index, UUID, PCI address, name, memory in use, temperature, and what
is wrong with them by NVIDIA's management library and the kernel's log: errors of memory that could
not be corrected, repairs that wait for a reset, what slows them down, and faults that the driver
reported (Xids).

  --check     Say only whether the GPUs that CUDA_VISIBLE_DEVICES leaves are fit, for
              `muster run --health-check 'muster gpus --check'`. Memory errors since the last reset
              and repairs that wait for one make a GPU unfit; heat and past Xids do not.
  --json      Print a JSON object for programs.
  -h, --help  Print this text.

Exit codes: 0 done, and with --check all are fit; 1 with --check, one is not fit, does not answer,
or there is none; 2 the command line is wrong; 4 stdout cannot be written.
)";

int Check(const GpuHealthReport& report) {
  const absl::Status status = CheckGpus(report, ReadEnvironment(environ));
  if (status.ok()) return kExitSuccess;
  std::fprintf(stderr, "muster gpus: %s\n", std::string(status.message()).c_str());
  return kExitUnfit;
}

}  // namespace

int GpusCommand(const std::vector<std::string>& args) {
  std::string wish;
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") return Answer("muster gpus", kGpusHelp);
    if ((arg != "--json" && arg != "--check") || (!wish.empty() && wish != arg)) {
      std::fprintf(stderr, "muster gpus: unexpected argument '%s'; see `muster gpus --help`\n",
                   arg.c_str());
      return kExitBadInput;
    }
    wish = arg;
  }
  const GpuHealthReport report = ReadGpuHealth();
  if (wish == "--check") return Check(report);
  if (!report.trouble.empty()) std::fprintf(stderr, "muster gpus: %s\n", report.trouble.c_str());
  if (report.gpus.empty()) {
    std::fputs("no GPUs\n", stderr);
  } else if (!report.log_readable) {
    std::fputs(
        "muster gpus: /dev/kmsg may not be read, so faults that the driver reported are "
        "not known\n",
        stderr);
  }
  if (wish == "--json") return Answer("muster gpus", GpusJson(report));
  return report.gpus.empty() ? kExitSuccess : Answer("muster gpus", GpuTable(report));
}

}  // namespace muster::launcher
