#include "launcher/commands/doctor.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/phrases.h"
#include "launcher/commands/answer.h"
#include "launcher/commands/doctor_hosts.h"
#include "launcher/commands/doctor_node.h"
#include "launcher/commands/rendezvous_args.h"
#include "launcher/doctor/machine.h"
#include "launcher/doctor/rendezvous_reach.h"
#include "launcher/doctor/report_json.h"
#include "launcher/doctor/report_text.h"
#include "launcher/doctor/ways_view.h"
#include "launcher/environment.h"
#include "launcher/flags/doctor_args.h"
#include "launcher/flags/hosts_run.h"
#include "launcher/machine/local_address.h"
#include "launcher/report/exit_code.h"
#include "rendezvous/identity/token_file.h"
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

With --hosts it asks each of these hosts the same, and has them measure the ways between them, both
ways: connections, packet sizes, round trips, bandwidth and clocks. A host takes part in one
measurement at a time, which sends 64 MiB at most, for a third of a second; of more than 16 hosts,
each is measured with 15 others.

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

// The secret of the rendezvous that the user named, for the hosts to meet it with.
absl::StatusOr<std::string> TokenForHosts(const HostsRun& run) {
  if (run.endpoint.empty() || run.token.insecure || !run.token.tls.empty()) return "";
  const auto file =
      rendezvous::ReadTokens(run.token.file.empty() ? run.token.own_file : run.token.file);
  if (!file.ok()) return file.status();
  return file->Text();
}

int DoctorOfHosts(const DoctorArgs& args, const Environment& environment) {
  ScannedArgs scanned = args.scanned;
  // In place of a script.
  scanned.command = {"doctor"};
  auto run = MakeHostsRun(scanned, Dialect::kRun, environment);
  if (!run.ok()) return FailDoctor(run.status());
  run->command = args.directories;
  const auto token = TokenForHosts(*run);
  if (!token.ok()) return FailDoctor(token.status());
  const HostsReport found = ExamineHosts(*run, *token);
  if (args.json) {
    base::Json json = ReportJson(found.report);
    json["ways"] = WaysJson(found.ways);
    return ShowText(found.report, base::JsonText(json, 2) + "\n");
  }
  return ShowText(found.report,
                  absl::StrCat(ReportText(found.report, base::Count(run->hosts.size(), "host")),
                               WaysText(found.ways)));
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
  if (AsksForHosts(flags)) return DoctorOfHosts(*parsed, environment);
  Report report =
      ExamineMachine({.log_dir = flags.config.log_dir,
                      .checkpoints = parsed->directories,
                      .has_peers = !parsed->node.empty() || !flags.rdzv_endpoint.empty()},
                     environment);
  const absl::Status reached = AddRendezvousFindings(flags, environment, report);
  if (!reached.ok()) return FailDoctor(reached);
  if (!parsed->node.empty()) return DoctorNode(parsed->node, std::move(report));
  return ShowText(report, parsed->json ? base::JsonText(ReportJson(report), 2) + "\n"
                                       : ReportText(report, HostName()));
}

}  // namespace muster::launcher
