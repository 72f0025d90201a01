#include "launcher/commands/logs_args.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "launcher/commands/rendezvous_args.h"
#include "rendezvous/core/names.h"

namespace muster::launcher {
namespace {

using rendezvous::RankRange;

constexpr char kLogsHelpBegin[] =
    R"(Usage: muster logs [FLAGS] JOB

Shows what the workers of a job print, or have printed, from the nodes on which they run. Several
ranks' lines begin with [RANK]. Remarks of Muster's own go to stderr.

A node has all of what --tee or --redirects of `muster run` write to files. Of other output it has
the last 64 KiB of each rank's stderr, and of stdout as well where `muster run` puts prefixes before
lines (--prefix-lines, or --hosts); what goes straight to a terminal or a file it does not have.

  JOB                        The job; also --rdzv-id. Default: TORCHELASTIC_RUN_ID, which workers
                             have, then PET_RDZV_ID.
  --rank RANKS               These ranks: 3, or 0-3,7. Default: all.
  -f, --follow               Go on with what is printed from now on, and with the next rounds, until
                             the job ends; and, when the rendezvous is gone, where that left off,
                             once it is back or another has taken over.
  --round N                  What round N has printed. Default: the last round that has started.
  --previous                 The round before that: what led to the restart.
  --since WHEN               Only what was printed since: 90 (seconds), 10m, 1h30m, 15:04:05 or
                             2026-11-25T15:04:05. To within a tenth of a second in the first minutes
                             of a rank's life, and of a five hundredth of it later; rather too much
                             than too little.
  --tail N                   Only the last N lines of each rank's stdout and stderr, as far as they
                             are in the last 4 MiB.
  --stdout, --stderr         One of the two. Default: both.
  --rdzv-endpoint HOST:PORT  Where the rendezvous is, as for `muster run`. Default:
                             MUSTER_RDZV_ENDPOINT, which workers have, then PET_RDZV_ENDPOINT.
)";
constexpr char kLogsHelpEnd[] =
    R"(  -h, --help                 Print this text.

Exit codes: 0 all was shown, and with --follow the job has ended; 1 there is no such job, round or
rank, or something is missing, as said on stderr; 2 the command line is wrong; 3 no rendezvous
answers, or comes back in time, or it refuses; 4 stdout cannot be written.
)";

absl::Status LogsMistake(const std::string& sentence) {
  return absl::InvalidArgumentError(absl::StrCat(sentence, "; see `muster logs --help`"));
}

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

absl::Status ReadRound(const RendezvousArgs& parsed, rendezvous::LogRequest& request) {
  request.previous = parsed.switches.contains("--previous");
  const auto round = parsed.values.find("--round");
  if (round == parsed.values.end()) return absl::OkStatus();
  if (request.previous) return LogsMistake("--round and --previous contradict each other");
  rendezvous::RoundNumber number = 0;
  if (!absl::SimpleAtoi(round->second, &number) || number < 0) {
    return LogsMistake(absl::StrCat("--round=", round->second, " is not the number of a round"));
  }
  request.round = number;
  return absl::OkStatus();
}

absl::Status ReadExtent(const RendezvousArgs& parsed, absl::Time now, absl::TimeZone zone,
                        rendezvous::LogExtent& extent) {
  extent.follow = parsed.switches.contains("--follow");
  const bool only_stdout = parsed.switches.contains("--stdout");
  const bool only_stderr = parsed.switches.contains("--stderr");
  extent.with_stdout = only_stdout || !only_stderr;
  extent.with_stderr = only_stderr || !only_stdout;
  if (const auto since = parsed.values.find("--since"); since != parsed.values.end()) {
    const absl::StatusOr<absl::Duration> ago = ParseSince(since->second, now, zone);
    if (!ago.ok())
      return LogsMistake(absl::StrCat("--since=", since->second, " ", ago.status().message()));
    extent.since = absl::ToChronoNanoseconds(*ago);
  }
  if (const auto tail = parsed.values.find("--tail"); tail != parsed.values.end()) {
    int lines = 0;
    if (!absl::SimpleAtoi(tail->second, &lines) || lines < 0) {
      return LogsMistake(absl::StrCat("--tail=", tail->second, " is not a number of lines"));
    }
    extent.tail = lines;
  }
  return absl::OkStatus();
}

}  // namespace

std::string LogsHelp() {
  return absl::StrCat(kLogsHelpBegin, kTokenHelp, kLogsHelpEnd);
}

absl::StatusOr<std::vector<RankRange>> ParseRankRanges(const std::string& text) {
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
        "is neither a time that has passed, such as 90 (seconds), 10m or 1h30m, nor one of the "
        "clock, such as 15:04:05 or 2026-11-25T15:04:05");
  }
  if (*ago < absl::ZeroDuration()) return absl::InvalidArgumentError("is in the future");
  return std::min(*ago, absl::Hours(24 * 365 * 30));
}

absl::StatusOr<LogsArgs> ParseLogsArgs(const std::vector<std::string>& args,
                                       const Environment& environment, absl::Time now,
                                       absl::TimeZone zone) {
  absl::StatusOr<RendezvousArgs> parsed =
      ParseRendezvousArgs(args,
                          {.switches = {"--follow", "--previous", "--stdout", "--stderr"},
                           .values = {"--rank", "--round", "--since", "--tail"},
                           .short_names = {{"-f", "--follow"}}},
                          environment);
  if (!parsed.ok()) return parsed.status();
  LogsArgs result;
  if (parsed->help) {
    result.help = true;
    return result;
  }
  result.endpoint = parsed->endpoint;
  result.token = parsed->token;
  rendezvous::LogRequest& request = result.request;
  request.run_id = parsed->run_id;
  if (parsed->operands.size() > 1) {
    return LogsMistake(absl::StrCat("unexpected argument '", parsed->operands[1], "'"));
  }
  if (!parsed->operands.empty()) {
    request.run_id = parsed->operands.front();
    const absl::Status named = rendezvous::CheckName("run id", request.run_id);
    if (!named.ok()) return named;
  }
  if (request.run_id.empty()) {
    return LogsMistake("no job is named; `muster status` lists those that are there");
  }
  if (const auto rank = parsed->values.find("--rank"); rank != parsed->values.end()) {
    auto ranges = ParseRankRanges(rank->second);
    if (!ranges.ok()) {
      return LogsMistake(absl::StrCat("--rank=", rank->second, " ", ranges.status().message()));
    }
    request.ranks = *std::move(ranges);
    result.one_rank = request.ranks.size() == 1 && request.ranks[0].first == request.ranks[0].last;
  }
  if (absl::Status status = ReadRound(*parsed, request); !status.ok()) return status;
  if (absl::Status status = ReadExtent(*parsed, now, zone, request.extent); !status.ok()) {
    return status;
  }
  return result;
}

}  // namespace muster::launcher
