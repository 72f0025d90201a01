#include "launcher/commands/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "base/safe_text.h"
#include "base/text.h"
#include "launcher/cli/command_run.h"
#include "launcher/cli/flag_table.h"
#include "launcher/cli/rendezvous_args.h"
#include "launcher/commands/commands.h"
#include "launcher/doctor/host_survey.h"
#include "launcher/doctor/machine.h"
#include "launcher/doctor/network.h"
#include "launcher/machine/environment.h"
#include "launcher/machine/network.h"
#include "rendezvous/identity/token.h"
#include "rendezvous/net/endpoint.h"
#include "rendezvous/net/find_credentials.h"

namespace muster::launcher {
namespace {

// What the rendezvous has for each answer.
constexpr std::chrono::seconds kPatience(5);

constexpr char kDoctor[] = "muster doctor";

// Those flags of `muster run` that say on which machines, and with which rendezvous and
// directories, a job is to run. The operands are directories, where checkpoints are to go.
struct DoctorArgs : RunFlags {
  bool json = false;
  // Which only the launch tree gives: INDEX@HOST:PORT, that of this host among those asked.
  std::string node;

  absl::Status Complete(base::Variables) const {
    if (std::find(operands.begin(), operands.end(), "") == operands.end()) return absl::OkStatus();
    return absl::InvalidArgumentError("the name of a directory is empty; was a variable not set?");
  }
};

constexpr Flag kDoctorFlags[] = {
    {.name = "--json",
     .kind = Flag::Kind::kAsk,
     .local_only = true,
     .help = "Print a JSON object for programs.",
     .set = Store<ReadSwitch, &DoctorArgs::json>},
    {.name = "--node",
     .has_variable = false,
     .local_only = true,
     .set = Store<ReadText, &DoctorArgs::node>},
};

int FailDoctor(const absl::Status& status) {
  return Fail(kDoctor, status.message(), kExitBadInput);
}

int ShowText(const Report& report, const std::string& text) {
  const int code = PrintOutput(kDoctor, text);
  if (code != kExitSuccess) return code;
  return HasErrors(report) ? kExitNo : kExitSuccess;
}

absl::StatusOr<rendezvous::TokenSource> TokenOfRun(const RunFlags& flags,
                                                   const Environment& environment) {
  return rendezvous::CompleteTokenSource(
      flags.options.token, [&](const char* variable) { return GetOr(environment, variable, ""); });
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
  RunFlags flags = args;
  // In place of a script.
  flags.operands = {"doctor"};
  auto run = MakeHostsRun(flags, Dialect::kRun, environment);
  if (!run.ok()) return FailDoctor(run.status());
  run->command = args.operands;
  const auto token = TokenForHosts(*run);
  if (!token.ok()) return FailDoctor(token.status());
  const HostsReport found = ExamineHosts(*run, *token);
  if (args.json) {
    base::Json json = ReportJson(found.report);
    json["links"] = LinksJson(found.links);
    return ShowText(found.report, base::SafeJson(base::JsonText(json, 2)) + "\n");
  }
  return ShowText(found.report,
                  absl::StrCat(ReportText(found.report, base::Count(run->hosts.size(), "host")),
                               LinksText(found.links)));
}

int Doctor(const DoctorArgs& args) {
  const Environment environment = ReadEnvironment(environ);
  if (AsksForHosts(args)) return DoctorOfHosts(args, environment);
  Report report = ExamineMachine({.log_dir = args.options.log_dir,
                                  .checkpoints = args.operands,
                                  .has_peers = !args.node.empty() || !args.rdzv_endpoint.empty()},
                                 environment);
  const absl::Status reached = AddRendezvousFindings(args, environment, report);
  if (!reached.ok()) return Fail(kDoctor, reached.message(), ExitCodeOf(reached));
  if (!args.node.empty()) return DoctorNode(args.node, std::move(report));
  return ShowText(report, args.json ? base::SafeJson(base::JsonText(ReportJson(report), 2)) + "\n"
                                    : ReportText(report, HostName()));
}

constexpr std::size_t kMaxColumns = 8;
// A name in a table of eight columns.
constexpr std::size_t kMaxName = 7;

std::string ShortName(const std::string& name) {
  return name.size() <= kMaxName ? name : absl::StrCat(name.substr(0, kMaxName - 1), "~");
}

using Print = std::function<std::string(const LinkMeasurement&)>;

std::string Matrix(const LinkMeasurements& links, const std::string& corner, const Print& print) {
  std::vector<std::vector<std::string>> rows = {{corner}};
  for (const std::string& host : links.hosts) rows.front().push_back(ShortName(host));
  for (int from = 0; from < static_cast<int>(links.hosts.size()); ++from) {
    std::vector<std::string> row = {ShortName(links.hosts[static_cast<std::size_t>(from)])};
    for (int to = 0; to < static_cast<int>(links.hosts.size()); ++to) {
      const auto found = links.measured.find({from, to});
      if (found == links.measured.end()) {
        row.emplace_back(from == to ? "." : "");
      } else {
        const bool connects = found->second.link.outcome == DialOutcome::kConnected;
        row.push_back(connects ? print(found->second.link) : "x");
      }
    }
    rows.push_back(std::move(row));
  }
  return base::TextTable(std::move(rows));
}

std::string Spread(const LinkMeasurements& links, const Print& print,
                   double LinkMeasurement::*value) {
  std::vector<const LinkMeasurement*> all;
  for (const auto& [pair, one] : links.measured) {
    if (one.link.*value > 0) all.push_back(&one.link);
  }
  if (all.empty()) return "nothing";
  std::sort(all.begin(), all.end(), [value](const LinkMeasurement* a, const LinkMeasurement* b) {
    return a->*value < b->*value;
  });
  return absl::StrCat("least ", print(*all.front()), ", median ", print(*all[all.size() / 2]),
                      ", greatest ", print(*all.back()));
}

}  // namespace

base::Command DoctorCommand() {
  return {
      .name = "doctor",
      .summary = "find what is wrong with machines before a job does",
      .operands = "[DIRECTORY...]",
      .about =
          R"(Says what is wrong with this machine before a job finds out: its name and addresses, clock, shared
memory, limits, control group, GPUs and driver, the variables of NCCL and Gloo, the directories for
logs and temporary files, and each DIRECTORY, where checkpoints are to go. With --rdzv-endpoint also
whether that rendezvous can be reached and takes the token. Of each finding it says what is wrong,
why that matters, and what to do, the most severe first.

With --hosts it asks each of these hosts the same, and has them measure the links between them, both
ways: connections, packet sizes, round trips, bandwidth and clocks. A host takes part in one
measurement at a time, which sends 64 MiB at most, for a third of a second; of more than 16 hosts,
each is measured with 15 others.
)",
      .end =
          R"(Exit codes: 0 nothing that will stop a job; 1 an error was found; 2 the command line is wrong; 4
stdout cannot be written.
)",
      .variable_prefix = "PET_",
      .flags = base::WithHelp(
          {AskedHostFlags(),
           PickRunFlags({"--fanout", "--export", "--rdzv-endpoint", "--token-file", "--token-fd",
                         "--tls-ca", "--tls-cert", "--tls-key", "--insecure", "--log-dir"}),
           kDoctorFlags}),
      .run = WithArgs<DoctorArgs, Doctor>};
}

std::string LinksText(const LinkMeasurements& links) {
  if (links.measured.empty()) return "";
  const Print latency = [](const LinkMeasurement& link) {
    return link.latency_us > 0 ? absl::StrFormat("%.3g", link.latency_us / 1000) : "";
  };
  const Print bandwidth = [](const LinkMeasurement& link) {
    return link.bytes_per_s > 0 ? absl::StrFormat("%.3g", link.bytes_per_s * 8e-9) : "";
  };
  if (links.hosts.size() > kMaxColumns) {
    return absl::StrCat(
        "\nround trips, ms:   ", Spread(links, latency, &LinkMeasurement::latency_us),
        "\nbandwidth, Gbit/s: ", Spread(links, bandwidth, &LinkMeasurement::bytes_per_s), "\n");
  }
  return absl::StrCat("\nround trips in ms, from the row to the column:\n",
                      Matrix(links, " ", latency), "\nbandwidth in Gbit/s, over one connection:\n",
                      Matrix(links, " ", bandwidth));
}

base::Json LinksJson(const LinkMeasurements& links) {
  base::Json json = base::Json::array();
  for (const auto& [pair, one] : links.measured) {
    json.push_back({{"from", links.hosts[static_cast<std::size_t>(pair.first)]},
                    {"to", links.hosts[static_cast<std::size_t>(pair.second)]},
                    {"connects", one.link.outcome == DialOutcome::kConnected},
                    {"latency_us", one.link.latency_us},
                    {"gbit_per_s", one.link.bytes_per_s * 8e-9},
                    {"clock_ahead_s", one.link.clock_ahead_s},
                    {"largest_packet", one.arrival.largest_packet}});
  }
  return json;
}

}  // namespace muster::launcher
