#include "launcher/commands/commands.h"

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "launcher/cli/command_run.h"
#include "launcher/cli/flag_table.h"
#include "launcher/cli/hosts_run.h"
#include "launcher/machine/environment.h"
#include "launcher/remote/host_list.h"
#include "launcher/remote/host_query.h"
#include "launcher/run/rank_layout.h"
#include "launcher/run/run_info.h"
#include "launcher/run/run_registry.h"

namespace muster::launcher {
namespace {

constexpr char kNoRuns[] = "no runs";

constexpr char kPs[] = "muster ps";

struct PsArgs : RunFlags {
  bool json = false;
  std::chrono::milliseconds timeout = HostQuery().timeout;
};

constexpr Flag kPsFlags[] = {
    {.name = "--json",
     .kind = Flag::Kind::kSwitch,
     .help = "Print a JSON array for programs.",
     .set = Store<ReadSwitch, &PsArgs::json>},
    {.name = "--timeout",
     .value_name = "SECONDS",
     .help = "With --hosts: how long all of it may take. Hosts that have not answered by then are "
             "listed.",
     .default_text = "60",
     .set = Store<ReadSecondsAboveZero, &PsArgs::timeout>},
};

void Warn(absl::string_view sentence) {
  Fail(kPs, sentence, kExitSuccess);
}

std::vector<RunInfo> RunsHere() {
  RunList list = ListRuns(RunsDirs(RunsPlaceOf(ReadEnvironment(environ))));
  for (const std::string& warning : list.warnings) Warn(warning);
  for (RunInfo& run : list.runs) {
    if (!HasLogs(run.log_dir)) run.log_dir.clear();
  }
  return std::move(list.runs);
}

// Those of all hosts that answer; `is_complete` says whether all have.
std::vector<RunInfo> RunsOf(const HostQuery& query, bool& is_complete) {
  const std::vector<HostAnswer> answers = AskHosts(query);
  std::vector<RunInfo> runs;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const HostAnswer& answer = answers[i];
    const std::string host = query.hosts[i].Text();
    if (!answer.failure.empty()) {
      is_complete = false;
      Warn(absl::StrCat(host, " ", answer.failure));
      continue;
    }
    for (const std::string& line : answer.said) {
      if (line != kNoRuns) Warn(absl::StrCat(host, ": ", line));
    }
    auto theirs = ReadRunInfos(answer.out);
    if (answer.exit_code != kExitSuccess || !theirs) {
      is_complete = false;
      Warn(absl::StrCat(host, ": `muster ps` failed there (exit code ", answer.exit_code, ")"));
      continue;
    }
    for (RunInfo& run : *theirs) {
      run.host = host;
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

absl::StatusOr<HostQuery> QueryOf(const PsArgs& args) {
  if (!args.hosts.empty() && !args.hostfile.empty()) {
    return absl::InvalidArgumentError(
        "--hosts does not go with --hostfile: both say which hosts there are; drop one of them");
  }
  HostQuery query{.hosts = args.hosts,
                  .command = {"ps", "--json"},
                  .timeout = args.timeout,
                  .launch_with = args.launch_with,
                  .ships = !args.no_copy,
                  .ssh_control_persist = args.ssh_control_persist};
  if (args.hostfile.empty()) return query;
  auto hosts = ReadHostfile(args.hostfile);
  if (!hosts.ok()) return hosts.status();
  query.hosts = *std::move(hosts);
  return query;
}

int Ps(const PsArgs& args) {
  bool is_complete = true;
  std::vector<RunInfo> runs;
  if (AsksForHosts(args)) {
    const auto query = QueryOf(args);
    if (!query.ok()) return Fail(kPs, query.status().message(), kExitBadInput);
    runs = RunsOf(*query, is_complete);
  } else {
    runs = RunsHere();
  }
  if (runs.empty()) std::fprintf(stderr, "%s\n", kNoRuns);
  int exit_code = kExitSuccess;
  if (args.json) {
    exit_code = PrintOutput(kPs, WriteRunInfos(runs));
  } else if (!runs.empty()) {
    exit_code = PrintOutput(kPs, RunTable(runs, absl::LocalTimeZone()));
  }
  return exit_code == kExitSuccess && !is_complete ? kExitNo : exit_code;
}

}  // namespace

base::Command PsCommand() {
  return {
      .name = "ps",
      .summary = "list the runs on this machine",
      .about =
          R"(Lists your runs on this machine, or on others: run id, pid, node rank, devices, ranks, state, when
it began, where its logs are, if it has written any, and the script.
)",
      .end =
          R"(Runs are found in MUSTER_RUNS_DIR if it is set, else in XDG_RUNTIME_DIR/muster, in directories of
yours that begin with /tmp/muster-UID, and in /run/user/UID/muster.

Exit codes: 0 done, even without runs; 1 a host has not answered; 2 the command line is wrong; 4
stdout cannot be written.
)",
      .flags = base::WithHelp({kPsFlags, AskedHostFlags()}),
      .run = WithArgs<PsArgs, Ps>};
}

}  // namespace muster::launcher
