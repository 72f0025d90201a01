#include "launcher/commands/top.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "launcher/commands/answer.h"
#include "launcher/commands/rendezvous_args.h"
#include "launcher/environment.h"
#include "launcher/report/exit_code.h"
#include "launcher/top/top.h"

namespace muster::launcher {
namespace {

constexpr char kTopHelpBegin[] =
    R"(Usage: muster top --rdzv-endpoint HOST:PORT [JOB]

Shows the jobs of a rendezvous on the whole terminal, as they change: the ranks of a job as a grid,
its rounds with what each cost and why it ended, its nodes, how far its ranks have come if their
workers tell, and of the chosen rank all that is known and, with o, what it prints while it prints
it. Keys are shown in the last line; ? tells all of them, q ends it.

Without colours (NO_COLOR, or a terminal that has none) it shows the same. Where there is no terminal
use `muster status --watch`.

  --rdzv-endpoint HOST:PORT  Where the rendezvous is, as for `muster run`. Default:
                             MUSTER_RDZV_ENDPOINT, which workers have, then PET_RDZV_ENDPOINT.
  --rdzv-id JOB              As JOB: what is shown first. Default: TORCHELASTIC_RUN_ID, which
                             workers have, then PET_RDZV_ID; else the list of all jobs.
)";
constexpr char kTopHelpEnd[] =
    R"(  -h, --help                 Print this text.

Exit codes: 0 its user has left; 1 there is no such job; 2 the command line is wrong, or this is no
terminal for it; 3 no rendezvous answers; 128+n signal n has ended it (130: Ctrl-C).
)";

constexpr int kNoJob = 1;

int FailTop(absl::string_view why, int exit_code) {
  std::fprintf(stderr, "muster top: %s\n", std::string(why).c_str());
  return exit_code;
}

}  // namespace

int TopCommand(const std::vector<std::string>& args) {
  const absl::StatusOr<RendezvousArgs> parsed =
      ParseRendezvousArgs(args, {.job = true}, ReadEnvironment(environ));
  if (!parsed.ok()) return FailTop(parsed.status().message(), kExitBadInput);
  if (parsed->help) {
    return Answer("muster top", absl::StrCat(kTopHelpBegin, kTokenHelp, kTopHelpEnd));
  }
  const auto daemon = DaemonOf(parsed->endpoint, parsed->token);
  if (!daemon.ok()) return FailTop(daemon.status().message(), kExitBadInput);
  const TopEnd end = RunTop(*daemon, parsed->run_id);
  if (end.signal != 0) return 128 + end.signal;
  if (end.status.ok()) return kExitSuccess;
  const std::string why(end.status.message());
  if (absl::IsFailedPrecondition(end.status)) {
    return FailTop(absl::StrCat(why, "; `muster status --watch` does without"), kExitBadInput);
  }
  return FailTop(why, absl::IsNotFound(end.status) ? kNoJob : kExitRendezvousFailed);
}

}  // namespace muster::launcher
