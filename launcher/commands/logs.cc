#include "launcher/commands/logs.h"

#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

#include "base/program.h"
#include "base/text.h"
#include "launcher/cli/command_run.h"
#include "launcher/cli/flag_table.h"
#include "launcher/commands/commands.h"
#include "rendezvous/client/log_reader.h"
#include "worker/output/console.h"
#include "worker/output/lines.h"

namespace muster::launcher {
namespace {

using rendezvous::LogExtent;
using rendezvous::LogNotice;
using rendezvous::LogPart;
using rendezvous::LogRequest;
using rendezvous::LogRound;
using rendezvous::LogStream;
using rendezvous::LogText;

constexpr char kLogs[] = "muster logs";

void Remark(absl::string_view sentence) {
  Fail(kLogs, sentence, kExitSuccess);
}

// Prints as it reads: who takes stdout slowly makes the daemon, and so the nodes, wait.
class LogPrinter {
 public:
  LogPrinter(boost::asio::io_context& io, const rendezvous::DaemonOptions& daemon,
             const LogsArgs& args)
      : io_(io),
        one_rank_(args.one_rank()),
        follows_(args.request.extent.follow),
        shows_parts_(follows_ && ::isatty(STDOUT_FILENO) == 1),
        reader_(std::in_place, io, daemon, args.request, rendezvous::LogFollower::kComesBackFor,
                rendezvous::LogFollower::Handlers{
                    .on_part =
                        [this](const LogPart& part) {
                          std::visit([this](const auto& kind) { Show(kind); }, part);
                        },
                    .on_outage = [this](const std::string& why) { OnOutage(why); },
                    .on_end = [this](const absl::Status& status) { OnEnd(status); }}) {}

  int exit_code() const { return exit_code_; }

 private:
  // One stream of one rank, whose lines have its prefix. Where somebody follows it on a terminal,
  // what a line has so far is shown when its end does not come: it may be a prompt.
  struct Stream {
    Stream(boost::asio::io_context& io, int rank, std::function<void(Stream&)> show_part)
        : prefixer(worker::LinePrefix(absl::StrCat("[", rank, "]: "), 0)),
          partial_line(io, [this, show_part = std::move(show_part)] {
            show_part(*this);
            return true;
          }) {}

    worker::LinePrefixer prefixer;
    worker::PartialLineTimer partial_line;
  };

  void Show(const LogText& text) {
    if (one_rank_) return Print(text.bytes);
    Stream& stream =
        streams_
            .try_emplace({text.rank, text.stream}, io_, text.rank,
                         [this](Stream& partial) {
                           Print(last_line_.Show(
                               &partial, partial.prefixer.Part(std::chrono::system_clock::now())));
                         })
            .first->second;
    const std::string lines = stream.prefixer.Feed(text.bytes, std::chrono::system_clock::now());
    PrintLines(lines, &stream);
    if (shows_parts_) stream.partial_line.OnBytes(!lines.empty(), stream.prefixer.holds_back());
  }

  void Show(const LogNotice& notice) { Remark(notice.sentence); }

  void Show(const LogRound& round) {
    FinishLines();
    if (std::exchange(any_round_, true)) {
      Remark(absl::StrCat("round ", round.round, " begins: ", round.reason));
    }
  }

  // Lines that their workers have not ended.
  void FinishLines() {
    for (auto& [whose, stream] : streams_) {
      PrintLines(stream.prefixer.Finish(std::chrono::system_clock::now()), &stream);
    }
    streams_.clear();
  }

  void PrintLines(std::string_view lines, const Stream* whose) {
    if (lines.empty()) return;
    std::string text = last_line_.Leave(whose, lines);
    Print(text.append(lines));
  }

  void Print(const std::string& text) {
    if (text.empty() || base::PrintOut(kLogs, text)) return;
    exit_code_ = kExitNodeFailed;
    reader_.reset();
    io_.stop();
  }

  void OnOutage(const std::string& why) {
    away_since_ = absl::Now();
    Remark(absl::StrCat(why, "; this goes on from here once it, or another that takes over, is ",
                        "there, and waits for ",
                        base::Seconds(rendezvous::LogFollower::kComesBackFor)));
  }

  void OnEnd(const absl::Status& status) {
    FinishLines();
    if (exit_code_ != kExitSuccess || status.ok()) return;
    // It has not come back in time, or what is there does not know where this reader was.
    const bool goes_on = follows_ && any_round_ && absl::IsUnavailable(status);
    Remark(goes_on ? absl::StrCat(status.message(), "; once it is back, -f --since=",
                                  absl::FormatTime("%H:%M:%S", away_since_.value_or(absl::Now()),
                                                   absl::LocalTimeZone()),
                                  " goes on from here")
                   : std::string(status.message()));
    switch (status.code()) {
      case absl::StatusCode::kInvalidArgument:
        exit_code_ = kExitBadInput;
        break;
      case absl::StatusCode::kNotFound:
      case absl::StatusCode::kOutOfRange:
      case absl::StatusCode::kFailedPrecondition:
      case absl::StatusCode::kDataLoss:
      case absl::StatusCode::kDeadlineExceeded:
        exit_code_ = kExitNo;
        break;
      default:
        exit_code_ = kExitRendezvousFailed;
    }
  }

  boost::asio::io_context& io_;
  const bool one_rank_;
  const bool follows_;
  // A program that reads this wants whole lines.
  const bool shows_parts_;
  std::map<std::pair<int, LogStream>, Stream> streams_;
  worker::RewrittenLine last_line_;
  bool any_round_ = false;
  std::optional<absl::Time> away_since_;  // when the daemon was lost last
  int exit_code_ = kExitSuccess;
  std::optional<rendezvous::LogFollower> reader_;
};

int ShowLogs(const LogsArgs& args) {
  const auto daemon = DaemonOf(args.endpoint, args.token);
  if (!daemon.ok()) return Fail(kLogs, daemon.status().message(), ExitCodeOf(daemon.status()));
  boost::asio::io_context io(1);
  LogPrinter printer(io, *daemon, args);
  io.run();
  return printer.exit_code();
}

using rendezvous::RankRange;

bool ReadRank(absl::string_view text, int& rank) {
  return absl::SimpleAtoi(text, &rank) && rank >= 0;
}

// "2d" and all that Abseil knows: "1h30m", "90s".
std::optional<absl::Duration> ParseLogDuration(const std::string& text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds)) return absl::Seconds(seconds);
  if (absl::EndsWith(text, "d") &&
      absl::SimpleAtod(absl::string_view(text).substr(0, text.size() - 1), &seconds)) {
    return absl::Hours(24 * seconds);
  }
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration)) return duration;
  return std::nullopt;
}

std::optional<absl::Time> ParseLogTime(const std::string& text, absl::Time now,
                                       absl::TimeZone zone) {
  absl::Time time;
  for (const char* format :
       {"%Y-%m-%dT%H:%M:%E*S%Ez", "%Y-%m-%dT%H:%M:%E*S", "%Y-%m-%d %H:%M:%E*S", "%Y-%m-%d"}) {
    if (absl::ParseTime(format, text, zone, &time, nullptr)) return time;
  }
  const std::string day = absl::FormatTime("%Y-%m-%d", now, zone);
  for (const char* format : {"%Y-%m-%d %H:%M:%E*S", "%Y-%m-%d %H:%M"}) {
    if (!absl::ParseTime(format, absl::StrCat(day, " ", text), zone, &time, nullptr)) continue;
    return time <= now ? time : time - absl::Hours(24);
  }
  return std::nullopt;
}

Problem SetSince(absl::string_view text, LogsArgs& args) {
  const absl::StatusOr<absl::Duration> ago =
      ParseSince(std::string(text), absl::Now(), absl::LocalTimeZone());
  if (!ago.ok()) return std::string(ago.status().message());
  args.request.extent.since = absl::ToChronoNanoseconds(*ago);
  return std::nullopt;
}

constexpr Flag kLogsFlags[] = {
    {.name = "--rank",
     .value_name = "RANKS",
     .help = "These ranks: 3, or 0-3,7.",
     .default_text = "all",
     .set = Store<ParseRankRanges, &LogsArgs::request, &LogRequest::ranks>},
    {.name = "--follow",
     .short_name = "-f",
     .kind = Flag::Kind::kSwitch,
     .help =
         "Go on with what is printed from now on, and with the next rounds, until the job ends; "
         "and, when the rendezvous is gone, where that left off, once it is back or another "
         "has taken over.",
     .set = Store<ReadSwitch, &LogsArgs::request, &LogRequest::extent, &LogExtent::follow>},
    {.name = "--round",
     .value_name = "N",
     .help = "What round N has printed.",
     .default_text = "the last round that has started",
     .set = Store<ReadNumber, &LogsArgs::request, &LogRequest::round>},
    {.name = "--previous",
     .kind = Flag::Kind::kSwitch,
     .help = "The round before that: what led to the restart.",
     .set = Store<ReadSwitch, &LogsArgs::request, &LogRequest::previous>},
    {.name = "--since",
     .value_name = "WHEN",
     .help = "Only what was printed since: 90 (seconds), 10m, 1h30m, 15:04:05 or "
             "2026-11-25T15:04:05. To within a tenth of a second in the first minutes of a rank's "
             "life, and of a five hundredth of it later; rather too much than too little.",
     .set = Apply<SetSince>},
    {.name = "--tail",
     .value_name = "N",
     .help = "Only the last N lines of each rank's stdout and stderr, as far as they are in the "
             "last 4 MiB.",
     .set = Store<ReadNumber, &LogsArgs::request, &LogRequest::extent, &LogExtent::tail>},
    {.name = "--stdout",
     .kind = Flag::Kind::kSwitch,
     .help = "Only stdout.",
     .set = Store<ReadSwitch, &LogsArgs::only_stdout>},
    {.name = "--stderr",
     .kind = Flag::Kind::kSwitch,
     .help = "Only stderr.",
     .set = Store<ReadSwitch, &LogsArgs::only_stderr>},
};

}  // namespace

base::Command LogsCommand() {
  return {
      .name = "logs",
      .summary = "show what a job's workers print, wherever they run",
      .operands = "[JOB]",
      .about =
          R"(Shows what the workers of a job print, or have printed, from the nodes on which they run. Several
ranks' lines begin with [RANK]. Remarks of Muster's own go to stderr.

A node has all of what --tee or --redirects of `muster run` write to files. Of other output it has
the last 64 KiB of each rank's stderr, and of stdout as well where `muster run` puts prefixes before
lines (--prefix-lines, or --hosts); what goes straight to a terminal or a file it does not have.
)",
      .end =
          R"(Exit codes: 0 all was shown, and with --follow the job has ended; 1 there is no such job, round or
rank, or something is missing, as said on stderr; 2 the command line is wrong; 3 no rendezvous
answers, or comes back in time, or it refuses; 4 stdout cannot be written.
)",
      .flags = base::WithHelp({kLogsFlags, RendezvousToolFlags()}),
      .run = WithArgs<LogsArgs, ShowLogs>};
}

absl::Status LogsArgs::Complete(base::Variables variables) {
  if (absl::Status status = RendezvousArgs::Complete(variables); !status.ok()) return status;
  request.run_id = run_id;
  request.extent.with_stdout = only_stdout || !only_stderr;
  request.extent.with_stderr = only_stderr || !only_stdout;
  if (run_id.empty()) {
    return absl::InvalidArgumentError(
        "no job is named; `muster status` lists those that are there");
  }
  if (request.round && request.previous) {
    return absl::InvalidArgumentError("--round and --previous contradict each other; drop one");
  }
  return absl::OkStatus();
}

bool LogsArgs::one_rank() const {
  return request.ranks.size() == 1 && request.ranks[0].first == request.ranks[0].last;
}

absl::StatusOr<std::vector<RankRange>> ParseRankRanges(absl::string_view text) {
  std::vector<RankRange> ranges;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, absl::MaxSplits('-', 1));
    RankRange range;
    const bool is_good = ReadRank(ends.front(), range.first) && ReadRank(ends.back(), range.last) &&
                         range.first <= range.last;
    if (!is_good) {
      return absl::InvalidArgumentError(
          "is not a list of ranks; write numbers from 0 with commas between, or 0-3");
    }
    ranges.push_back(range);
  }
  return ranges;
}

absl::StatusOr<absl::Duration> ParseSince(const std::string& text, absl::Time now,
                                          absl::TimeZone zone) {
  std::optional<absl::Duration> ago = ParseLogDuration(text);
  if (!ago) {
    if (const auto time = ParseLogTime(text, now, zone)) ago = now - *time;
  }
  if (!ago) {
    return absl::InvalidArgumentError(
        "is neither a duration, such as 90 (seconds), 10m or 1h30m, nor a time, such as 15:04:05 "
        "or 2026-11-25T15:04:05");
  }
  if (*ago < absl::ZeroDuration()) return absl::InvalidArgumentError("is in the future");
  return std::min(*ago, absl::Hours(24 * 365 * 30));
}

}  // namespace muster::launcher
