#include "launcher/views/report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "base/safe_text.h"
#include "base/text.h"
#include "launcher/cli/command_run.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMaxStderrLines = 20;
constexpr std::size_t kMaxOthers = 16;

std::vector<std::string> Lines(absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line :
       absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), '\n')) {
    lines.push_back(base::TerminalLine({line.data(), line.size()}));
  }
  return lines;
}

void AppendField(absl::string_view name, absl::string_view value, std::string& out) {
  absl::StrAppendFormat(&out, "  %-10s: %s\n", name, base::SafeText({value.data(), value.size()}));
}

// The first lines of `text`, the first beside its name.
void AppendLines(absl::string_view name, absl::string_view text, std::size_t max_lines,
                 std::string& out) {
  const std::vector<std::string> lines = Lines(text);
  AppendField(name, lines.front(), out);
  const std::size_t shown = std::min(lines.size(), max_lines);
  const std::string indent(14, ' ');
  for (std::size_t i = 1; i < shown; ++i) absl::StrAppend(&out, indent, lines[i], "\n");
  if (shown < lines.size()) {
    absl::StrAppend(&out, indent, "(", base::Count(lines.size() - shown, "more line"), ")\n");
  }
}

// The last lines of `text` below its heading; nothing when there are none.
void AppendQuote(absl::string_view heading, absl::string_view text, std::size_t max_lines,
                 std::string& out) {
  if (absl::StripAsciiWhitespace(text).empty()) return;
  const std::vector<std::string> lines = Lines(text);
  const std::size_t first = lines.size() - std::min(lines.size(), max_lines);
  absl::StrAppend(&out, "  ", heading, "\n");
  for (std::size_t i = first; i < lines.size(); ++i) absl::StrAppend(&out, "    ", lines[i], "\n");
}

std::string ExitText(const rendezvous::WorkerFailure& failure) {
  const int code = failure.signal == 0 ? failure.exit_code : -failure.signal;
  if (failure.pid == 0) return absl::StrCat(code, " (never started)");
  return absl::StrCat(code, " (pid: ", failure.pid, ")");
}

std::string Story(const rendezvous::Verdict& verdict, const ReportContext& context) {
  return absl::StrCat("after ", base::Seconds(context.elapsed), ", ",
                      base::Count(static_cast<std::size_t>(verdict.rounds), "round"), ", ",
                      base::Count(static_cast<std::size_t>(verdict.restarts), "restart"));
}

// Below what says how the run ended.
std::string Restarts(const ReportContext& context) {
  std::string lines;
  for (const std::string& restart : context.restarts) {
    absl::StrAppend(&lines, "  ", base::TerminalLine(restart), "\n");
  }
  return lines;
}

// One failure, field by field; what torchrun's summary has is called as it is there. Its time is
// `otherwise` if it has none of its own.
void AppendFailure(const rendezvous::WorkerFailure& failure, const std::string& this_node,
                   std::optional<absl::Time> otherwise, absl::TimeZone zone, std::string& out) {
  const bool here = failure.node_id == this_node;
  const std::optional<absl::Time> time =
      failure.error_time != 0 ? absl::FromUnixSeconds(failure.error_time) : otherwise;
  if (time) AppendField("time", absl::FormatTime("%Y-%m-%d_%H:%M:%S", *time, zone), out);
  AppendField("host", absl::StrCat(failure.host, here ? " (this node)" : ""), out);
  AppendField("rank", absl::StrCat(failure.rank, " (local_rank: ", failure.local_rank, ")"), out);
  AppendField("exitcode", ExitText(failure), out);
  AppendField("reason", base::TerminalLine(failure.what), out);
  if (!failure.operations.empty())
    AppendField("operations", base::TerminalLine(failure.operations), out);
  AppendField("error_file", failure.error_file.empty() ? "<N/A>" : failure.error_file, out);
  if (!failure.log_path.empty()) AppendField("log", failure.log_path, out);
  if (!failure.error_message.empty()) {
    AppendLines("message", failure.error_message, 20, out);
    AppendQuote("traceback :", failure.error_traceback, 100, out);
  }
}

// The folder is named once where all are in the first one's: "/logs/evidence_rank0.txt,
// evidence_rank1.txt".
std::string FilesInWords(const std::vector<std::string>& files) {
  const std::string folder = files.front().substr(0, files.front().rfind('/') + 1);
  std::vector<std::string> names = {files.front()};
  for (std::size_t i = 1; i < files.size(); ++i) {
    const bool is_beside = files[i].rfind('/') + 1 == folder.size() && files[i].starts_with(folder);
    names.push_back(is_beside ? files[i].substr(folder.size()) : files[i]);
  }
  return base::ShortList(names);
}

std::string FailureBlock(const rendezvous::Verdict& verdict,
                         const rendezvous::WorkerFailure& failure, const ReportContext& context) {
  const std::string thick = std::string(60, '=') + "\n";
  const std::string thin = std::string(60, '-') + "\n";

  std::string out =
      absl::StrCat(thick, context.program, " FAILED\n", Story(verdict, context), "\n", thin,
                   "Failures:\n", context.others.empty() ? "  <NO_OTHER_FAILURES>\n" : "");
  const std::size_t shown = std::min(context.others.size(), kMaxOthers);
  for (std::size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&out, "[", i + 1, "]:\n");
    AppendFailure(context.others[i], context.node_id, context.now, context.zone, out);
  }
  if (const std::size_t left_out = context.others.size() - shown; left_out > 0) {
    absl::StrAppend(&out, "  <", left_out, " MORE OF THIS NODE>\n");
  }
  absl::StrAppend(&out, thin, "Root Cause (first observed failure):\n[0]:\n");
  AppendFailure(failure, context.node_id, context.now, context.zone, out);
  if (!context.evidence.empty()) AppendField("evidence", FilesInWords(context.evidence), out);
  AppendQuote("last lines of its stderr:", failure.stderr_tail, kMaxStderrLines, out);
  if (!context.restarts.empty()) absl::StrAppend(&out, thin, "Restarts:\n", Restarts(context));
  return out + thick;
}

// How the run ended, in one line; empty when there is nothing to say.
std::string Headline(const rendezvous::Verdict& verdict, const ReportContext& context) {
  switch (verdict.kind) {
    case rendezvous::VerdictKind::kSucceeded:
      if (!context.verbose && context.restarts.empty()) return "";
      return absl::StrCat(context.program, " succeeded ", Story(verdict, context), "\n");
    case rendezvous::VerdictKind::kWorkerFailed:
      break;
    case rendezvous::VerdictKind::kJoinTimeout:
      return absl::StrCat("muster run: rendezvous failed: ", verdict.sentence, "\n");
    case rendezvous::VerdictKind::kClosed:
      return absl::StrCat("muster run: rendezvous closed: ", verdict.sentence, "\n");
  }
  return absl::StrCat("muster run: ", context.program, " failed: ", verdict.sentence, "\n");
}

std::string Headline(const RendezvousFailed& failed, const ReportContext&) {
  return absl::StrCat("muster run: rendezvous failed: ", failed.status.message(), "\n");
}

std::string Headline(const NodeFailed& failed, const ReportContext&) {
  return absl::StrCat("muster run: this node cannot run its workers: ", failed.status.message(),
                      "\n");
}

std::string Headline(const Interrupted& interrupted, const ReportContext& context) {
  return absl::StrCat("muster run: ", context.program, " was interrupted by ",
                      base::SignalName(interrupted.signal), " after ",
                      base::Seconds(context.elapsed), "\n");
}

std::string Headline(const LeftEarly& left, const ReportContext& context) {
  return absl::StrCat("muster run: ", context.program, " goes on without this node after ",
                      base::Seconds(context.elapsed), ": ", left.why, "\n");
}

int WorkerExitCode(const rendezvous::WorkerFailure& failure) {
  if (failure.signal != 0) return 128 + failure.signal;
  // A failure never looks like success, whatever was reported.
  return failure.exit_code == 0 ? kExitWorkerFailed : failure.exit_code;
}

}  // namespace

std::string FormatFailure(const rendezvous::WorkerFailure& failure, absl::TimeZone zone) {
  std::string out = "First failure:\n";
  AppendFailure(failure, /*this_node=*/"", /*otherwise=*/std::nullopt, zone, out);
  AppendQuote("last lines of its stderr:", failure.stderr_tail, kMaxStderrLines, out);
  return out;
}

std::string FormatReport(const RunResult& result, const ReportContext& context) {
  const auto* verdict = std::get_if<rendezvous::Verdict>(&result);
  if (verdict != nullptr && verdict->kind == rendezvous::VerdictKind::kWorkerFailed &&
      verdict->root_cause) {
    return FailureBlock(*verdict, *verdict->root_cause, context);
  }
  return std::visit([&](const auto& end) { return Headline(end, context); }, result) +
         Restarts(context);
}

int ExitCodeFor(const RunResult& result, ExitCodePolicy policy) {
  if (const auto* interrupted = std::get_if<Interrupted>(&result)) {
    return 128 + interrupted->signal;
  }
  if (std::holds_alternative<NodeFailed>(result)) return kExitNodeFailed;
  if (std::holds_alternative<LeftEarly>(result)) return kExitSuccess;
  const auto* verdict = std::get_if<rendezvous::Verdict>(&result);
  if (verdict == nullptr) return kExitRendezvousFailed;
  switch (verdict->kind) {
    case rendezvous::VerdictKind::kSucceeded:
      return kExitSuccess;
    case rendezvous::VerdictKind::kJoinTimeout:
    case rendezvous::VerdictKind::kClosed:
      return kExitRendezvousFailed;
    case rendezvous::VerdictKind::kWorkerFailed:
      break;
  }
  return policy == ExitCodePolicy::kWorker && verdict->root_cause
             ? WorkerExitCode(*verdict->root_cause)
             : kExitWorkerFailed;
}

void RestartTimeline::On(const AgentEvent& event, Time time) {
  // What happens twice (two failures, a failure and the order to stop) counts the first time.
  const auto begin = [&](std::string cause) {
    if (!current_) {
      current_ = Restart{.round = event.round, .cause = std::move(cause), .detected = time};
    }
  };
  const auto mark = [&](std::optional<Time>& step) {
    if (!step) step = time;
  };
  switch (event.kind) {
    case AgentEventKind::kWorkerFailed:
      begin(absl::StrCat("rank ", event.rank, " ", event.cause));
      break;
    case AgentEventKind::kToldToStop:
      begin(event.cause);
      mark(current_->told);
      break;
    case AgentEventKind::kFenced:
    case AgentEventKind::kEvicted:
      begin(event.cause);
      break;
    case AgentEventKind::kWorkersGone:
      if (current_) mark(current_->stopped);
      break;
    case AgentEventKind::kJoining:
      if (current_) mark(current_->rejoined);
      break;
    case AgentEventKind::kWorkersStarted:
      if (!current_) break;
      current_->started = time;
      current_->next_round = event.round;
      last_.push_back(*std::exchange(current_, std::nullopt));
      if (last_.size() <= kShownRestarts) break;
      if (first_.size() < kShownRestarts) {
        first_.push_back(std::move(last_.front()));
      } else {
        ++between_;
      }
      last_.pop_front();
      break;
    case AgentEventKind::kFirstBeat:
      if (!last_.empty() && last_.back().next_round == event.round) mark(last_.back().first_beat);
      break;
    default:
      break;
  }
}

std::vector<std::string> RestartTimeline::Lines() const {
  std::vector<std::string> lines;
  for (const Restart& restart : first_) lines.push_back(Line(restart));
  if (between_ > 0) lines.push_back(absl::StrCat("... ", between_, " more restarts ..."));
  for (const Restart& restart : last_) lines.push_back(Line(restart));
  return lines;
}

std::string RestartTimeline::Line(const Restart& restart) {
  const auto after = [&](Time time) { return base::Measured(time - restart.detected); };
  std::vector<std::string> steps;
  const auto add = [&](const char* step, const std::optional<Time>& time) {
    if (time) steps.push_back(absl::StrCat(step, " ", after(*time)));
  };
  add("told", restart.told);
  add("stopped", restart.stopped);
  add("rejoined", restart.rejoined);
  add("first beat", restart.first_beat);
  return absl::StrCat("round ", restart.round, " ended: ", restart.cause, "; the workers of round ",
                      restart.next_round, " ran ", after(restart.started), " later (",
                      absl::StrJoin(steps, ", "), ")");
}

}  // namespace muster::launcher
