#include "launcher/commands/ps.h"

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "launcher/agent/log_layout.h"
#include "launcher/commands/answer.h"
#include "launcher/commands/host_args.h"
#include "launcher/environment.h"
#include "launcher/registry/run_registry.h"
#include "launcher/registry/run_table.h"
#include "launcher/registry/runs_place.h"
#include "launcher/report/exit_code.h"
#include "launcher/tree/host_query.h"

namespace muster::launcher {
namespace {

constexpr char kNoRuns[] = "no runs";

constexpr char kPsHelp[] =
    R"(Usage: muster ps [--hosts HOST,...] [--json]

Lists your runs on this machine, or on others: run id, pid, node rank, devices, ranks, state, when
it began, where its logs are, if it has written any, and the script.

  --json                Print a JSON array for programs.
)";

constexpr char kPsPlaces[] =
    R"(  -h, --help            Print this text.

Runs are found in MUSTER_RUNS_DIR if it is set, else in XDG_RUNTIME_DIR/muster, in directories of
yours that begin with /tmp/muster-UID, and in /run/user/UID/muster. The exit code is 1 if a host
has not answered.
)";

constexpr int kHostMissing = 1;

int PrintRuns(const std::string& text) {
  return Answer("muster ps", text);
}

void Warn(absl::string_view sentence) {
  std::fprintf(stderr, "muster ps: %s\n", std::string(sentence).c_str());
}

int FailPs(absl::string_view sentence) {
  Warn(sentence);
  return kExitBadInput;
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
      Warn(absl::StrCat(host, ": `muster ps` has no list of runs for us; it ended with ",
                        answer.exit_code));
      continue;
    }
    for (RunInfo& run : *theirs) {
      run.host = host;
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

}  // namespace

int PsCommand(const std::vector<std::string>& args) {
  bool as_json = false;
  HostArgs hosts;
  for (std::size_t next = 0; next < args.size(); ++next) {
    const std::string& arg = args[next];
    if (arg == "--help" || arg == "-h") {
      return PrintRuns(absl::StrCat(kPsHelp, kHostArgsHelp, kPsPlaces));
    }
    const auto taken = hosts.Take(args, next);
    if (!taken.ok()) return FailPs(taken.status().message());
    if (!*taken && arg != "--json") {
      return FailPs(absl::StrCat("unexpected argument '", arg, "'; see `muster ps --help`"));
    }
    as_json = as_json || arg == "--json";
  }
  bool is_complete = true;
  std::vector<RunInfo> runs;
  if (hosts.asks()) {
    const auto query = hosts.Query({"ps", "--json"});
    if (!query.ok()) return FailPs(query.status().message());
    runs = RunsOf(*query, is_complete);
  } else {
    runs = RunsHere();
  }
  if (runs.empty()) std::fprintf(stderr, "%s\n", kNoRuns);
  int exit_code = kExitSuccess;
  if (as_json) {
    exit_code = PrintRuns(WriteRunInfos(runs));
  } else if (!runs.empty()) {
    exit_code = PrintRuns(RunTable(runs, absl::LocalTimeZone()));
  }
  return exit_code == kExitSuccess && !is_complete ? kHostMissing : exit_code;
}

}  // namespace muster::launcher
