#include "launcher/commands/doctor.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "launcher/commands/answer.h"
#include "launcher/commands/rendezvous_args.h"
#include "launcher/doctor/machine.h"
#include "launcher/doctor/rendezvous_reach.h"
#include "launcher/doctor/report_json.h"
#include "launcher/doctor/report_text.h"
#include "launcher/environment.h"
#include "launcher/flags/doctor_args.h"
#include "launcher/machine/local_address.h"
#include "launcher/report/exit_code.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/token_source.h"

namespace muster::launcher {
namespace {

constexpr int kExitFound = 1;

// What the rendezvous has for each answer.
constexpr std::chrono::seconds kPatience(5);

constexpr char kDoctorHelpBegin[] =
    R"(Usage: muster doctor [flags] [DIRECTORY...]

Says what is wrong with this machine before a job finds out: its name and addresses, clock, shared
memory, limits, control group, GPUs and driver, the variables of NCCL and Gloo, the directories for
logs and temporary files, and each DIRECTORY, where checkpoints are to go. With --rdzv-endpoint also
whether that rendezvous can be reached and takes the token. Of each finding it says what is wrong,
why that matters, and what to do, the most severe first.

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

int ShowText(const Report& report, const std::string& text) {
  const int code = Answer("muster doctor", text);
  if (code != kExitSuccess) return code;
  return HasErrors(report) ? kExitFound : kExitSuccess;
}

absl::StatusOr<rendezvous::TokenSource> TokenOfRun(const RunFlags& flags,
                                                   const Environment& environment) {
  return rendezvous::CompleteTokenSource(
      flags.config.token, [&](const char* variable) { return GetOr(environment, variable, ""); });
}

// Where a rendezvous is named, what is wrong with the way to it.
absl::Status AddRendezvousFindings(const RunFlags& flags, const Environment& environment,
                                   Report& report) {
  if (flags.rdzv_endpoint.empty()) return absl::OkStatus();
  const auto endpoint =
      rendezvous::ParseEndpoint(flags.rdzv_endpoint, rendezvous::kDefaultRendezvousPort);
  if (!endpoint.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rdzv-endpoint=", flags.rdzv_endpoint, " ", endpoint.status().message()));
  }
  const auto source = TokenOfRun(flags, environment);
  if (!source.ok()) return source.status();
  auto daemon = DaemonOf(*endpoint, *source);
  if (!daemon.ok()) return daemon.status();
  daemon->patience = kPatience;
  Judge(ReachRendezvous(*daemon), report);
  SortFindings(report);
  return absl::OkStatus();
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
  const RunFlags& flags = parsed->scanned.flags;
  Report report = ExamineMachine({.log_dir = flags.config.log_dir,
                                  .checkpoints = parsed->directories,
                                  .has_peers = !flags.rdzv_endpoint.empty()},
                                 environment);
  const absl::Status reached = AddRendezvousFindings(flags, environment, report);
  if (!reached.ok()) return FailDoctor(reached);
  return ShowText(report, parsed->json ? base::JsonText(ReportJson(report), 2) + "\n"
                                       : ReportText(report, HostName()));
}

}  // namespace muster::launcher
