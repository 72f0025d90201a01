#include "launcher/commands/commands.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "launcher/cli/command_run.h"
#include "launcher/cli/rendezvous_args.h"
#include "launcher/top/top.h"

namespace muster::launcher {
namespace {

constexpr char kTop[] = "muster top";

int ShowTop(const RendezvousArgs& args) {
  const auto daemon = DaemonOf(args.endpoint, args.token);
  if (!daemon.ok()) return Fail(kTop, daemon.status().message(), ExitCodeOf(daemon.status()));
  const TopEnd end = RunTop(*daemon, args.run_id);
  if (end.signal != 0) return 128 + end.signal;
  if (end.status.ok()) return kExitSuccess;
  if (absl::IsFailedPrecondition(end.status)) {
    return Fail(kTop, absl::StrCat(end.status.message(), "; `muster status --watch` does without"),
                kExitBadInput);
  }
  return Fail(kTop, end.status.message(),
              absl::IsNotFound(end.status) ? kExitNo : kExitRendezvousFailed);
}

}  // namespace

base::Command TopCommand() {
  return {
      .name = "top",
      .summary = "show them live, full-screen",
      .operands = "[JOB]",
      .about =
          R"(Shows the jobs of a rendezvous on the whole terminal, as they change: the ranks of a job as a grid,
its rounds with what each cost and why it ended, its nodes, how far its ranks have come if their
workers tell, and of the chosen rank all that is known and, with o, what it prints while it prints
it. Without a JOB it begins with the list of all jobs. Keys are shown in the last line; ? tells all
of them, q ends it.

Without colours (NO_COLOR, or a terminal that has none) it shows the same. Where there is no terminal
use `muster status --watch`.
)",
      .end =
          R"(Exit codes: 0 its user has left; 1 there is no such job; 2 the command line is wrong, or this is no
terminal for it; 3 no rendezvous answers; 128+n signal n has ended it (130: Ctrl-C).
)",
      .flags = base::WithHelp({RendezvousToolFlags()}),
      .run = WithArgs<RendezvousArgs, ShowTop>};
}

}  // namespace muster::launcher
