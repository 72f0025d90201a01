// The setters of flags that say what is to become of failures: restarts, hangs, unfit nodes.
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/seconds.h"
#include "launcher/flags/flag_setters.h"
#include "worker/hang/stack_command.h"

namespace muster::launcher {
namespace {

Problem SetSeconds(absl::string_view value, std::chrono::milliseconds shortest,
                   std::chrono::milliseconds& field) {
  const auto time = base::ParseSeconds(value);
  if (!time || *time < shortest) {
    return shortest.count() == 0 ? "is not a time; give a number of seconds from 0"
                                 : "is not a time; give a number of seconds above 0";
  }
  field = *time;
  return std::nullopt;
}

constexpr std::chrono::milliseconds kZero{0};
constexpr std::chrono::milliseconds kAboveZero{1};

}  // namespace

Problem SetScaleUp(absl::string_view value, RunFlags& flags) {
  if (value != "now" && value != "next-restart") {
    return "is not a time for newcomers to join; use now or next-restart";
  }
  flags.scale_up = value == "now" ? rendezvous::ScaleUp::kNow : rendezvous::ScaleUp::kNextRestart;
  return std::nullopt;
}

Problem SetRestartDelay(absl::string_view value, RunFlags& flags) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(value, absl::MaxSplits(':', 1));
  const auto first = base::ParseSeconds(parts.first);
  const auto longest = absl::StrContains(value, ':') ? base::ParseSeconds(parts.second)
                                                     : base::ParseSeconds(parts.first);
  constexpr std::chrono::hours kLongest(24);
  if (!first || !longest || *longest < *first || *longest > kLongest) {
    return "is not a delay; give seconds, or FIRST:LONGEST with FIRST <= LONGEST <= 86400";
  }
  flags.restart.delay = *first;
  flags.restart.longest_delay = *longest;
  return std::nullopt;
}

Problem SetRestartWindow(absl::string_view value, RunFlags& flags) {
  std::chrono::milliseconds window{};
  if (const Problem problem = SetSeconds(value, kZero, window)) return problem;
  flags.restart.window = window;
  return std::nullopt;
}

Problem SetNoProgressLimit(absl::string_view value, RunFlags& flags) {
  int limit = 0;
  if (!absl::SimpleAtoi(value, &limit) || limit < 0) {
    return "is not a number of failures; give a whole number from 0";
  }
  flags.restart.no_progress_limit = limit;
  return std::nullopt;
}

Problem SetFinalExitCodes(absl::string_view value, RunFlags& flags) {
  std::vector<ExitCodeRange> ranges;
  for (const absl::string_view entry : absl::StrSplit(value, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(entry, absl::MaxSplits('-', 1));
    ExitCodeRange range;
    const bool is_range = absl::StrContains(entry, '-');
    if (!absl::SimpleAtoi(ends.first, &range.first) ||
        !absl::SimpleAtoi(is_range ? ends.second : ends.first, &range.last) || range.first < 1 ||
        range.last > 255 || range.last < range.first) {
      return "is not a list of exit codes; write numbers from 1 to 255 and ranges, as 2,64-78";
    }
    ranges.push_back(range);
  }
  flags.final_exit_codes = std::move(ranges);
  return std::nullopt;
}

Problem SetHangTimeout(absl::string_view value, RunFlags& flags) {
  return SetSeconds(value, kZero, flags.hang.timeout);
}

Problem SetFirstBeatTimeout(absl::string_view value, RunFlags& flags) {
  return SetSeconds(value, kZero, flags.hang.first_beat_timeout);
}

Problem SetHangSigns(absl::string_view value, RunFlags& flags) {
  if (value != "beats" && value != "output") {
    return "is no sign of life that is known; use beats, or output for beats and output";
  }
  flags.hang.output_counts = value == "output";
  return std::nullopt;
}

Problem SetHangAction(absl::string_view value, RunFlags& flags) {
  if (value == "restart") {
    flags.hang.action = HangAction::kRestart;
  } else if (value == "end") {
    flags.hang.action = HangAction::kEnd;
  } else if (value == "report") {
    flags.hang.action = HangAction::kReport;
  } else {
    return "is not what can be done about a hang; use restart, end or report";
  }
  return std::nullopt;
}

Problem SetStackCommand(absl::string_view value, RunFlags& flags) {
  const auto command = worker::StackCommand::Parse({value.data(), value.size()});
  if (!command.ok()) return std::string(command.status().message());
  flags.hang.stack_command = std::string(value);
  return std::nullopt;
}

Problem SetHealthCheck(absl::string_view value, RunFlags& flags) {
  flags.health.command = std::string(absl::StripAsciiWhitespace(value));
  return std::nullopt;
}

Problem SetHealthCheckTimeout(absl::string_view value, RunFlags& flags) {
  return SetSeconds(value, kAboveZero, flags.health.timeout);
}

}  // namespace muster::launcher
