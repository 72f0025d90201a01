#include "launcher/commands/ps.h"

#include <unistd.h>

#include <cstdio>

#include "absl/time/time.h"
#include "launcher/agent/log_layout.h"
#include "launcher/commands/answer.h"
#include "launcher/environment.h"
#include "launcher/registry/run_registry.h"
#include "launcher/registry/run_table.h"
#include "launcher/registry/runs_place.h"
#include "launcher/report/exit_code.h"

namespace muster::launcher {
namespace {

constexpr char kPsHelp[] =
    R"(Usage: muster ps [--json]

Lists your runs on this machine: run id, pid, node rank, devices, ranks, state, when it began, where
its logs are, if it has written any, and the script.

  --json      Print a JSON array for programs.
  -h, --help  Print this text.

Runs are found in MUSTER_RUNS_DIR if it is set, else in XDG_RUNTIME_DIR/muster, in directories of
yours that begin with /tmp/muster-UID, and in /run/user/UID/muster.
)";

int PrintRuns(const std::string& text) {
  return Answer("muster ps", text);
}

}  // namespace

int PsCommand(const std::vector<std::string>& args) {
  bool as_json = false;
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") return PrintRuns(kPsHelp);
    if (arg != "--json") {
      std::fprintf(stderr, "muster ps: unexpected argument '%s'; see `muster ps --help`\n",
                   arg.c_str());
      return kExitBadInput;
    }
    as_json = true;
  }

  RunList list = ListRuns(RunsDirs(RunsPlaceOf(ReadEnvironment(environ))));
  for (const std::string& warning : list.warnings) {
    std::fprintf(stderr, "muster ps: %s\n", warning.c_str());
  }
  for (RunInfo& run : list.runs) {
    if (!HasLogs(run.log_dir)) run.log_dir.clear();
  }
  if (list.runs.empty()) std::fputs("no runs\n", stderr);
  if (as_json) return PrintRuns(WriteRunInfos(list.runs));
  return list.runs.empty() ? kExitSuccess : PrintRuns(RunTable(list.runs, absl::LocalTimeZone()));
}

}  // namespace muster::launcher
