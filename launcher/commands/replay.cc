#include "launcher/commands/commands.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "base/cli/readers.h"
#include "base/failure.h"
#include "base/json.h"
#include "base/safe_path.h"
#include "base/unique_fd.h"
#include "launcher/cli/command_run.h"
#include "launcher/replay/event_file.h"
#include "launcher/replay/job_events.h"
#include "launcher/replay/timeline.h"
#include "launcher/replay/views.h"

namespace muster::launcher {
namespace {

constexpr char kReplay[] = "muster replay";

struct ReplayArgs : base::CommandArgs {
  std::string job;
  std::string html;
  std::string trace;
  bool schema = false;
};

constexpr base::Flag kReplayFlags[] = {
    {.name = "--html",
     .value_name = "OUT_FILE",
     .help = "Write a page for a browser, which needs no network.",
     .set = base::Store<base::ReadText, &ReplayArgs::html>},
    {.name = "--trace",
     .value_name = "OUT_FILE",
     .help = "Write a trace for Perfetto (ui.perfetto.dev) or Chrome.",
     .set = base::Store<base::ReadText, &ReplayArgs::trace>},
    {.name = "--job",
     .value_name = "JOB",
     .help = "The job, where the logs are of several.",
     .set = base::Store<base::ReadText, &ReplayArgs::job>},
    {.name = "--schema",
     .kind = base::Flag::Kind::kSwitch,
     .help = "Print the JSON schema of event logs, and nothing else.",
     .set = base::Store<base::ReadSwitch, &ReplayArgs::schema>},
};

constexpr absl::StatusCode kFileTrouble = absl::StatusCode::kFailedPrecondition;

absl::StatusOr<base::UniqueFd> OpenForWhole(const std::string& attempt, const std::string& path,
                                            int flags) {
  absl::StatusOr<base::UniqueFd> file = base::OpenFile(path, flags | O_NOCTTY, 0600);
  if (file.ok()) return file;
  return base::Failure(kFileTrouble, attempt, path, file.status().message());
}

// Waits for a disk, or a pipe. `what` is what it is called in the error, which is one line: "read
// the event log /x: Permission denied".
absl::StatusOr<std::string> ReadWholeFile(const std::string& what, const std::string& path) {
  const std::string attempt = "read " + what;
  const auto file = OpenForWhole(attempt, path, O_RDONLY);
  if (!file.ok()) return file.status();
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = read(file->get(), buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) return base::SystemFailure(kFileTrouble, attempt, path);
  }
}

// Replaces what is in the file, or makes it (mode 0600, as logs have). A link of another user's is
// not followed (base/safe_path.h).
absl::Status WriteWholeFile(const std::string& what, const std::string& path,
                            absl::string_view text) {
  const std::string attempt = "write " + what;
  const auto file = OpenForWhole(attempt, path, O_WRONLY | O_CREAT);
  if (!file.ok()) return file.status();
  struct stat status {};
  if (fstat(file->get(), &status) == 0 && S_ISREG(status.st_mode) &&
      ftruncate(file->get(), 0) != 0) {
    return base::SystemFailure(kFileTrouble, attempt, path);
  }
  while (!text.empty()) {
    const ssize_t put = write(file->get(), text.data(), text.size());
    if (put > 0) text.remove_prefix(static_cast<std::size_t>(put));
    if (put < 0 && errno != EINTR) return base::SystemFailure(kFileTrouble, attempt, path);
  }
  return absl::OkStatus();
}

absl::StatusOr<Timeline> ReadTimeline(const ReplayArgs& args) {
  std::vector<EventFile> files;
  for (const std::string& path : args.operands) {
    const absl::StatusOr<std::string> text = ReadWholeFile("the event log", path);
    if (!text.ok()) return text.status();
    absl::StatusOr<EventFile> file = ReadEvents(path, *text);
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
  }
  absl::StatusOr<JobEvents> job = ChooseJob(std::move(files), args.job);
  if (!job.ok()) return job.status();
  return MakeTimeline(*std::move(job));
}

int Replay(const ReplayArgs& args) {
  if (args.schema) return PrintOutput(kReplay, base::JsonText(EventSchema(), 2) + "\n");
  if (args.operands.empty()) {
    return Fail(kReplay, "no event log is given; name files written by muster run --event-log=FILE",
                kExitBadInput);
  }
  const absl::StatusOr<Timeline> timeline = ReadTimeline(args);
  if (!timeline.ok()) return Fail(kReplay, timeline.status().message(), kExitBadInput);
  absl::Status written;
  if (!args.html.empty()) written = WriteWholeFile("the page", args.html, HtmlView(*timeline));
  if (written.ok() && !args.trace.empty()) {
    written = WriteWholeFile("the trace", args.trace, TraceView(*timeline));
  }
  if (!written.ok()) return Fail(kReplay, written.message(), kExitNodeFailed);
  return PrintOutput(kReplay, TextView(*timeline));
}

}  // namespace

base::Command ReplayCommand() {
  return {
      .name = "replay",
      .summary = "show what happened to a job, from the event logs of its nodes",
      .operands = "[FILE...]",
      .forms = "[flags] FILE...",
      .about =
          R"(Shows what happened to a job, from the event logs of its nodes (muster run --event-log=FILE):

  muster replay node0.json node1.json --html=job.html

Its rounds and why each ended, what each restart cost by phase, and which share of the time was of
use. Prints a summary; --html and --trace write more. Nodes whose logs are missing are named, and
clocks that differ are brought into line. Several nodes may share a FILE.
)",
      .end =
          R"(Exit codes: 0 done; 2 the command line is wrong, or a log cannot be read; 4 something cannot be
written.
)",
      .flags = base::WithHelp({kReplayFlags}),
      .run = WithArgs<ReplayArgs, Replay>};
}

}  // namespace muster::launcher
