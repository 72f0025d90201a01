#include "launcher/commands/doctor.h"

#include <unistd.h>

#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "launcher/commands/answer.h"
#include "launcher/doctor/machine.h"
#include "launcher/doctor/report_json.h"
#include "launcher/doctor/report_text.h"
#include "launcher/environment.h"
#include "launcher/flags/doctor_args.h"
#include "launcher/machine/local_address.h"
#include "launcher/report/exit_code.h"

namespace muster::launcher {
namespace {

constexpr int kExitFound = 1;

constexpr char kDoctorHelpBegin[] =
    R"(Usage: muster doctor [flags] [DIRECTORY...]

Says what is wrong with this machine before a job finds out: its name and addresses, clock, shared
memory, limits, control group, GPUs and driver, the variables of NCCL and Gloo, the directories for
logs and temporary files, and each DIRECTORY, where checkpoints are to go. Of each finding it says
what is wrong, why that matters, and what to do, the most severe first.

)";
constexpr char kDoctorHelpEnd[] =
    R"(  --json                          Print a JSON object for programs.
  -h, --help                      Print this text.

Exit codes: 0 nothing that will stop a job; 1 an error was found; 2 the command line is wrong; 4
stdout cannot be written.
)";

int FailDoctor(const absl::Status& status) {
  std::fprintf(stderr, "muster doctor: %s\n", std::string(status.message()).c_str());
  return kExitBadInput;
}

int Show(const Report& report, const std::string& of, bool json) {
  const int code = Answer("muster doctor", json ? base::JsonText(ReportJson(report), 2) + "\n"
                                                : ReportText(report, of));
  if (code != kExitSuccess) return code;
  return HasErrors(report) ? kExitFound : kExitSuccess;
}

}  // namespace

int DoctorCommand(const std::vector<std::string>& args) {
  const Environment environment = ReadEnvironment(environ);
  const auto parsed = ParseDoctorArgs(args, environment);
  if (!parsed.ok()) return FailDoctor(parsed.status());
  if (parsed->help) {
    return Answer("muster doctor",
                  absl::StrCat(kDoctorHelpBegin, DoctorFlagsHelp(), kDoctorHelpEnd));
  }
  const Report report = ExamineMachine(
      {.log_dir = parsed->scanned.flags.config.log_dir, .checkpoints = parsed->directories},
      environment);
  return Show(report, HostName(), parsed->json);
}

}  // namespace muster::launcher
