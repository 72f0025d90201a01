#include "launcher/report/report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/phrases.h"
#include "base/signal_names.h"
#include "launcher/report/exit_code.h"

namespace muster::launcher {
namespace {

constexpr std::size_t kMaxStderrLines = 20;

// One line as a terminal would have left it: a progress bar's last state, no control characters.
std::string Printable(absl::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const std::size_t overwritten = line.rfind('\r');
  if (overwritten != absl::string_view::npos) line.remove_prefix(overwritten + 1);
  std::string printable;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      // A colour or a cursor movement: parameters up to a letter.
      i += 2;
      while (i < line.size() && !absl::ascii_isalpha(static_cast<unsigned char>(line[i]))) ++i;
    } else if (line[i] == '\t' || !absl::ascii_iscntrl(static_cast<unsigned char>(line[i]))) {
      printable += line[i];
    }
  }
  return printable;
}

std::vector<std::string> Lines(absl::string_view text) {
  std::vector<std::string> lines;
  for (const absl::string_view line :
       absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), '\n')) {
    lines.push_back(Printable(line));
  }
  return lines;
}

void AppendField(absl::string_view name, absl::string_view value, std::string& out) {
  absl::StrAppendFormat(&out, "  %-10s: %s\n", name, value);
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

// Below the line that says how the run ended.
std::string Restarts(const ReportContext& context) {
  std::string lines;
  for (const std::string& restart : context.restarts) {
    absl::StrAppend(&lines, "  ", Printable(restart), "\n");
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
  AppendField("reason", Printable(failure.what), out);
  if (!failure.operations.empty()) AppendField("operations", Printable(failure.operations), out);
  AppendField("error_file", failure.error_file.empty() ? "<N/A>" : failure.error_file, out);
  if (!failure.log_path.empty()) AppendField("log", failure.log_path, out);
  if (!failure.error_message.empty()) {
    AppendField("message", Printable(failure.error_message), out);
    AppendQuote("traceback :", failure.error_traceback, 100, out);
  }
}

std::string FailureBlock(const rendezvous::Verdict& verdict,
                         const rendezvous::WorkerFailure& failure, const ReportContext& context) {
  const std::string thick = std::string(60, '=') + "\n";
  const std::string thin = std::string(60, '-') + "\n";

  std::string out = absl::StrCat(thick, context.program, " FAILED\n", Story(verdict, context), "\n",
                                 Restarts(context), thin, "Failures:\n",
                                 context.others.empty() ? "  <NO_OTHER_FAILURES>\n" : "");
  for (std::size_t i = 0; i < context.others.size(); ++i) {
    absl::StrAppend(&out, "[", i + 1, "]:\n");
    AppendFailure(context.others[i], context.node_id, context.now, context.zone, out);
  }
  absl::StrAppend(&out, thin, "Root Cause (first observed failure):\n[0]:\n");
  AppendFailure(failure, context.node_id, context.now, context.zone, out);
  AppendQuote("last lines of its stderr:", failure.stderr_tail, kMaxStderrLines, out);
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

}  // namespace muster::launcher
