#include "launcher/commands/status.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "launcher/commands/answer.h"
#include "launcher/commands/job_text.h"
#include "launcher/commands/job_view.h"
#include "launcher/commands/rendezvous_args.h"
#include "launcher/commands/watch_status.h"
#include "launcher/environment.h"
#include "launcher/report/exit_code.h"
#include "rendezvous/client/job_query.h"

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;

constexpr char kStatusHelpBegin[] =
    R"(Usage: muster status --rdzv-endpoint HOST:PORT [JOB] [--watch] [--json]

Shows the jobs of a rendezvous, also the last 64 that have ended: of each its state, round, nodes,
ranks and restarts, and who is waited for and why, or how it ended. With a JOB, that job, its nodes,
how far its ranks have come if their workers tell (docs/observing.md), what is wrong with a rank
(stopped, silent, its output lost), its rounds with how long each took and why it ended, and the
first failure if it has failed: rank, host, exit code, error and the last lines of stderr. With --watch, again whenever something has
changed: on a terminal in the same place, else one block after another. `muster top` shows more of
it on the whole terminal.

  --rdzv-endpoint HOST:PORT  Where the rendezvous is, as for `muster run`. Default:
                             MUSTER_RDZV_ENDPOINT, which workers have, then PET_RDZV_ENDPOINT.
  --rdzv-id JOB              As JOB. Default: TORCHELASTIC_RUN_ID, which workers have, then
                             PET_RDZV_ID; else all jobs.
)";
constexpr char kStatusHelpEnd[] =
    R"(  --watch                    Go on until Ctrl-C or, with a JOB, until that has ended.
  --json                     Print a JSON array for programs. With --watch, one object for each
                             change, {"jobs": [...], "ended": [...]}, each in a line.
  -h, --help                 Print this text.

Exit codes: 0 done; 1 there is no such job; 2 the command line is wrong; 3 no rendezvous answers;
4 stdout cannot be written. With --watch and a JOB that ends, those of its `muster run`: 0 it has
succeeded; 1 a worker has failed; 3 a round did not complete in time, or the rendezvous has closed.
)";

constexpr int kExitNoSuchJob = 1;

absl::StatusOr<std::vector<JobSnapshot>> Query(const RendezvousArgs& args,
                                               const rendezvous::DaemonOptions& daemon) {
  if (args.run_id.empty()) return rendezvous::ListJobs(daemon);
  absl::StatusOr<JobSnapshot> job = rendezvous::DescribeJob(daemon, args.run_id);
  if (!job.ok()) return job.status();
  return std::vector<JobSnapshot>{*std::move(job)};
}

int Fail(const absl::Status& status, int exit_code) {
  std::fprintf(stderr, "muster status: %s\n", std::string(status.message()).c_str());
  return exit_code;
}

int PrintStatus(const std::string& text) {
  return Answer("muster status", text);
}

}  // namespace

int StatusCommand(const std::vector<std::string>& args) {
  const absl::StatusOr<RendezvousArgs> parsed = ParseRendezvousArgs(
      args, {.json = true, .watch = true, .job = true}, ReadEnvironment(environ));
  if (!parsed.ok()) return Fail(parsed.status(), kExitBadInput);
  if (parsed->help) return PrintStatus(absl::StrCat(kStatusHelpBegin, kTokenHelp, kStatusHelpEnd));

  const auto daemon = DaemonOf(parsed->endpoint, parsed->token);
  if (!daemon.ok()) return Fail(daemon.status(), kExitBadInput);
  if (parsed->watch) return WatchStatus(*daemon, parsed->run_id, parsed->json);
  const absl::StatusOr<std::vector<JobSnapshot>> jobs = Query(*parsed, *daemon);
  if (absl::IsNotFound(jobs.status())) return Fail(jobs.status(), kExitNoSuchJob);
  if (!jobs.ok()) return Fail(jobs.status(), kExitRendezvousFailed);
  if (jobs->empty()) std::fprintf(stderr, "no jobs at %s\n", ToString(parsed->endpoint).c_str());
  if (parsed->json) return PrintStatus(JobsJson(*jobs));
  if (jobs->empty()) return 0;
  if (parsed->run_id.empty()) return PrintStatus(JobTable(*jobs));
  return PrintStatus(JobText(jobs->front(), absl::LocalTimeZone()));
}

}  // namespace muster::launcher
