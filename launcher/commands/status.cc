#include "launcher/commands/commands.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "base/cli/readers.h"
#include "launcher/cli/command_run.h"
#include "launcher/cli/rendezvous_args.h"
#include "launcher/views/status_view.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/client/job_watch.h"
#include "rendezvous/pages/job_view.h"

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;

constexpr char kStatus[] = "muster status";

struct StatusArgs : RendezvousArgs {
  bool watch = false;
  bool json = false;
};

constexpr base::Flag kStatusFlags[] = {
    {.name = "--watch",
     .kind = base::Flag::Kind::kSwitch,
     .help = "Go on until Ctrl-C or, with a JOB, until that has ended.",
     .set = base::Store<base::ReadSwitch, &StatusArgs::watch>},
    {.name = "--json",
     .kind = base::Flag::Kind::kSwitch,
     .help = "Print a JSON array for programs. With --watch, one object for each change, "
             "{\"jobs\": [...], \"ended\": [...]}, each in a line.",
     .set = base::Store<base::ReadSwitch, &StatusArgs::json>},
};

absl::StatusOr<std::vector<JobSnapshot>> Query(const StatusArgs& args,
                                               const rendezvous::DaemonOptions& daemon) {
  if (args.run_id.empty()) return rendezvous::ListJobs(daemon);
  absl::StatusOr<JobSnapshot> job = rendezvous::DescribeJob(daemon, args.run_id);
  if (!job.ok()) return job.status();
  return std::vector<JobSnapshot>{*std::move(job)};
}

bool CanRedraw() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && term != nullptr && *term != '\0' &&
         absl::string_view(term) != "dumb";
}

int CodeOfVerdict(rendezvous::VerdictKind how) {
  switch (how) {
    case rendezvous::VerdictKind::kSucceeded:
      return kExitSuccess;
    case rendezvous::VerdictKind::kWorkerFailed:
      return kExitWorkerFailed;
    case rendezvous::VerdictKind::kJoinTimeout:
    case rendezvous::VerdictKind::kClosed:
      break;
  }
  return kExitRendezvousFailed;
}

class StatusWatch final : private rendezvous::JobWatch::Listener {
 public:
  StatusWatch(boost::asio::io_context& io, const rendezvous::DaemonOptions& daemon,
              const std::string& run_id, bool json)
      : io_(io), of_one_job_(!run_id.empty()), json_(json), redraws_(!json && CanRedraw()) {
    rendezvous::JobWatch::Listener& listener = *this;
    watch_.emplace(io, daemon, run_id, listener);
  }

  // Once the loop has stopped.
  int exit_code() const { return exit_code_; }

 private:
  void OnJobs(const rendezvous::WatchedJobs& watched) override {
    is_in_touch_ = true;
    for (const rendezvous::JobEnd& end : watched.ended) {
      if (of_one_job_) exit_code_ = CodeOfVerdict(end.kind);
    }
    if (watched.unchanged && !redraws_) return;
    if (json_) return Print(WatchJson(watched));
    text_ = WatchText(watched, of_one_job_, absl::LocalTimeZone());
    if (redraws_) return Redraw();
    Print(absl::StrCat(std::exchange(has_printed_, true) ? "\n" : "", text_));
  }

  void OnOutOfTouch(const std::string& why) override {
    // Once for an outage.
    if (!std::exchange(is_in_touch_, false)) return;
    const std::string trouble = absl::StrCat(why, "; trying again");
    if (redraws_) {
      absl::StrAppend(&text_, "\n", trouble, "\n");
      return Redraw();
    }
    Fail(kStatus, trouble, kExitSuccess);
  }

  void OnOver(const absl::Status& status) override {
    if (!status.ok()) {
      exit_code_ = Fail(kStatus, status.message(),
                        absl::IsNotFound(status) ? kExitNo : kExitRendezvousFailed);
    }
    io_.stop();
  }

  // Over what is there, as watch(1) does.
  void Redraw() { Print(absl::StrCat("\x1b[H\x1b[J", text_)); }

  void Print(const std::string& text) {
    if (PrintOutput(kStatus, text) == kExitSuccess) return;
    exit_code_ = kExitNodeFailed;
    io_.stop();
  }

  boost::asio::io_context& io_;
  const bool of_one_job_;
  const bool json_;
  const bool redraws_;  // on a terminal
  bool is_in_touch_ = true;
  bool has_printed_ = false;
  std::string text_;  // that is shown
  int exit_code_ = kExitSuccess;
  std::optional<rendezvous::JobWatch> watch_;
};

int WatchStatus(const rendezvous::DaemonOptions& daemon, const StatusArgs& args) {
  // Never destroyed: gRPC's threads may post while the program ends.
  auto* const io = new boost::asio::io_context(1);
  const StatusWatch watch(*io, daemon, args.run_id, args.json);
  io->run();
  return watch.exit_code();
}

int ShowStatus(const StatusArgs& args) {
  const auto daemon = DaemonOf(args.endpoint, args.token);
  if (!daemon.ok()) return Fail(kStatus, daemon.status().message(), ExitCodeOf(daemon.status()));
  if (args.watch) return WatchStatus(*daemon, args);
  const absl::StatusOr<std::vector<JobSnapshot>> jobs = Query(args, *daemon);
  if (!jobs.ok()) {
    return Fail(kStatus, jobs.status().message(),
                absl::IsNotFound(jobs.status()) ? kExitNo : kExitRendezvousFailed);
  }
  if (jobs->empty()) std::fprintf(stderr, "no jobs at %s\n", ToString(args.endpoint).c_str());
  if (args.json) return PrintOutput(kStatus, JobsJson(*jobs));
  if (jobs->empty()) return kExitSuccess;
  if (args.run_id.empty()) {
    return PrintOutput(kStatus, rendezvous::TableText(rendezvous::JobTable(*jobs)));
  }
  return PrintOutput(kStatus, JobText(jobs->front(), absl::LocalTimeZone()));
}

}  // namespace

base::Command StatusCommand() {
  return {
      .name = "status",
      .summary = "show the jobs of a rendezvous and what they wait for",
      .operands = "[JOB]",
      .about =
          R"(Shows the jobs of a rendezvous, also the last 64 that have ended: of each its state, round, nodes,
ranks and restarts, and who is waited for and why, or how it ended. With a JOB, that job, its nodes,
how far its ranks have come if their workers tell (docs/observing.md), what is wrong with a rank
(stopped, silent, its output lost), its rounds with how long each took and why it ended, and the
first failure if it has failed: rank, host, exit code, error and the last lines of stderr. With
--watch, again whenever something has changed: on a terminal in the same place, else one block after
another. `muster top` shows more of it on the whole terminal.
)",
      .end =
          R"(Exit codes: 0 done; 1 there is no such job; 2 the command line is wrong; 3 no rendezvous answers;
4 stdout cannot be written. With --watch and a JOB that ends, those of its `muster run`: 0 it has
succeeded; 1 a worker has failed; 3 a round did not complete in time, or the rendezvous has closed.
)",
      .flags = base::WithHelp({RendezvousToolFlags(), kStatusFlags}),
      .run = WithArgs<StatusArgs, ShowStatus>};
}

}  // namespace muster::launcher
