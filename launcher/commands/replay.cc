#include "launcher/commands/replay.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "launcher/commands/answer.h"
#include "launcher/commands/whole_file.h"
#include "launcher/replay/event_file.h"
#include "launcher/replay/html_view.h"
#include "launcher/replay/job_events.h"
#include "launcher/replay/text_view.h"
#include "launcher/replay/timeline.h"
#include "launcher/replay/trace_view.h"
#include "launcher/report/event_schema.h"
#include "launcher/report/exit_code.h"

namespace muster::launcher {
namespace {

constexpr char kReplayAbout[] =
    R"(Shows what happened to a job, from the event logs of its nodes (muster run --event-log=FILE):

  muster replay node0.json node1.json --html=job.html

Its rounds and why each ended, what each restart cost by phase, and which share of the time was of
use. Prints a summary; --html and --trace write more. Nodes whose logs are missing are named, and
clocks that differ are brought into line.
)";

constexpr char kReplayEnd[] =
    R"(Exit codes: 0 done; 2 the command line is wrong, or a log cannot be read; 4 something cannot be
written.)";

struct ReplayFlags {
  std::vector<std::string> files;
  std::string job;
  std::string html;
  std::string trace;
  bool schema = false;
};

int ReplayFailure(absl::string_view sentence, int exit_code) {
  std::fprintf(stderr, "muster replay: %s\n", std::string(sentence).c_str());
  return exit_code;
}

void AddReplayFlags(CLI::App& app, ReplayFlags& flags) {
  app.add_option("FILE", flags.files, "event logs, of all nodes; several nodes may share one")
      ->type_name("");
  app.add_option("--html", flags.html, "write a page for a browser, which needs no network")
      ->type_name("OUT");
  app.add_option("--trace", flags.trace, "write a trace for Perfetto (ui.perfetto.dev) or Chrome")
      ->type_name("OUT");
  app.add_option("--job", flags.job, "the job, where the logs are of several")->type_name("JOB");
  app.add_flag("--schema", flags.schema, "print the JSON schema of event logs, and nothing else");
}

absl::StatusOr<Timeline> ReadTimeline(const ReplayFlags& flags) {
  std::vector<EventFile> files;
  for (const std::string& path : flags.files) {
    const absl::StatusOr<std::string> text = ReadWholeFile("the event log", path);
    if (!text.ok()) return text.status();
    absl::StatusOr<EventFile> file = ReadEvents(path, *text);
    if (!file.ok()) return file.status();
    files.push_back(*std::move(file));
  }
  absl::StatusOr<JobEvents> job = ChooseJob(std::move(files), flags.job);
  if (!job.ok()) return job.status();
  return MakeTimeline(*std::move(job));
}

}  // namespace

int ReplayCommand(const std::vector<std::string>& args) {
  ReplayFlags flags;
  CLI::App app{kReplayAbout, "muster replay"};
  app.footer(kReplayEnd);
  AddReplayFlags(app, flags);
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::CallForHelp&) {
    return Answer("muster replay", app.help());
  } catch (const CLI::ParseError& error) {
    return ReplayFailure(absl::StrCat(error.what(), "; see muster replay --help"), kExitBadInput);
  }
  if (flags.schema) return Answer("muster replay", base::JsonText(EventSchema(), 2) + "\n");
  if (flags.files.empty()) {
    return ReplayFailure(
        "no event log is named; give the files that muster run --event-log=FILE has written",
        kExitBadInput);
  }
  const absl::StatusOr<Timeline> timeline = ReadTimeline(flags);
  if (!timeline.ok()) return ReplayFailure(timeline.status().message(), kExitBadInput);
  if (!flags.html.empty()) {
    const absl::Status status = WriteWholeFile("the page", flags.html, HtmlView(*timeline));
    if (!status.ok()) return ReplayFailure(status.message(), kExitNodeFailed);
  }
  if (!flags.trace.empty()) {
    const absl::Status status = WriteWholeFile("the trace", flags.trace, TraceView(*timeline));
    if (!status.ok()) return ReplayFailure(status.message(), kExitNodeFailed);
  }
  return Answer("muster replay", TextView(*timeline));
}

}  // namespace muster::launcher
