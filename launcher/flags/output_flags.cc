// The flags that say where output goes, and what Muster itself says.
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/config/redirects.h"
#include "launcher/config/words.h"
#include "launcher/flags/filter_list.h"
#include "launcher/flags/flag_table.h"
#include "launcher/flags/readers.h"

namespace muster::launcher {
namespace {

absl::StatusOr<std::vector<int>> ReadRanks(absl::string_view text) {
  std::vector<int> ranks;
  for (const absl::string_view entry : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    int rank = 0;
    if (!absl::SimpleAtoi(entry, &rank) || rank < 0) {
      return absl::InvalidArgumentError(
          "is not a list of local ranks; write numbers from 0 with commas between");
    }
    ranks.push_back(rank);
  }
  return ranks;
}

absl::StatusOr<std::vector<std::string>> ReadFilters(absl::string_view text) {
  return SplitFilters(text);
}

// In letters of either case, as LOGLEVEL has it, and with Python's other names.
absl::StatusOr<LogLevel> ReadLogLevel(absl::string_view text) {
  const std::string level = absl::AsciiStrToLower(text);
  if (level == "warn") return LogLevel::kWarning;
  if (level == "critical") return LogLevel::kError;
  return ReadWord<kLogLevels>(level);
}

Problem CheckLogsSpecs(absl::string_view value, RunFlags&) {
  if (value == "default") return std::nullopt;
  return "is a Python plug-in of torchrun's, which cannot be loaded here; use --log-dir, "
         "--redirects and --tee";
}

Problem CheckEventLogHandler(absl::string_view value, RunFlags&) {
  if (value == "null" || value == "dynamic_rendezvous") return std::nullopt;
  return "is an event handler of torchrun's, which cannot be loaded here; use --event-log=FILE "
         "for programs, or --log-level=info";
}

constexpr Flag kOutputFlags[] = {
    {.name = "--log-dir",
     .value_name = "DIR",
     .help = "Where logs and error files go; /dev/null: nowhere.",
     .default_text = "a fresh muster_* directory in TMPDIR",
     .set = Store<ReadText, &LaunchConfig::log_dir>},
    {.name = "--redirects",
     .short_name = "-r",
     .value_name = "CHOICE",
     .help = "Output that goes to a file instead of the console: 0 none, 1 stdout, 2 stderr, 3 "
             "both; or for certain local ranks, such as 0:3,1:2.",
     .default_text = "0",
     .set = Store<ParseRedirects, &LaunchConfig::redirects>},
    {.name = "--tee",
     .short_name = "-t",
     .value_name = "CHOICE",
     .help = "Output that goes to a file and, with a prefix on each line, to the console. Values "
             "as for --redirects.",
     .default_text = "0",
     .set = Store<ParseRedirects, &LaunchConfig::tee>},
    {.name = "--local-ranks-filter",
     .value_name = "N,...",
     .help = "Show only the output of these local ranks on the console. Files are not affected.",
     .default_text = "all",
     .set = Store<ReadRanks, &LaunchConfig::local_ranks_filter>},
    {.name = "--prefix-lines",
     .kind = Flag::Kind::kSwitch,
     .ours = true,
     .help =
         "Put the prefix of tee'd lines before every line on the console, also where nothing is "
         "tee'd.",
     .default_text = "off; on with --hosts",
     .set = Store<ReadSwitch, &LaunchConfig::prefix_lines>},
    {.name = "--log-line-prefix-template",
     .value_name = "TEXT",
     .help = "The prefix of each tee'd line. It may contain ${role_name}, ${rank}, ${local_rank}, "
             "${hostname}, ${pid} and ${time}.",
     .default_text = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE or [${role_name}${local_rank}]:",
     .other_variable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
     .set = Store<ReadText, &LaunchConfig::prefix_template>},
    {.name = "--duplicate-stdout-filters",
     .value_name = "TEXT,...",
     .help = "Tee'd lines of stdout that contain one of these texts also go to "
             "filtered_stdout.log. Write ,, for a comma.",
     .default_text = "none",
     .set = Store<ReadFilters, &LaunchConfig::stdout_filters>},
    {.name = "--duplicate-stderr-filters",
     .value_name = "TEXT,...",
     .help = "The same for stderr and filtered_stderr.log.",
     .default_text = "none",
     .set = Store<ReadFilters, &LaunchConfig::stderr_filters>},
    {.name = "--logs-specs",
     .kind = Flag::Kind::kIgnored,
     .has_variable = false,
     .value_name = "default",
     .help = "Log plug-ins in Python cannot be loaded; see --log-dir, --redirects and --tee.",
     .set = CheckLogsSpecs},
    {.name = "--event-log-handler",
     .kind = Flag::Kind::kIgnored,
     .value_name = "NAME",
     .help = "Event handlers in Python cannot be loaded; see --event-log and --log-level=info.",
     .set = CheckEventLogHandler},
    {.name = "--event-log",
     .ours = true,
     .value_name = "FILE",
     .help = "Append what happens on this node to FILE, for programs to read: one JSON object per "
             "line. `muster replay` shows it.",
     .default_text = "none",
     .set = Store<ReadText, &LaunchConfig::event_log>},
    {.name = "--log-level",
     .ours = true,
     .value_name = "LEVEL",
     .help = "How much Muster itself logs to stderr: debug, info, warning or error.",
     .default_text = "LOGLEVEL or warning",
     .other_variable = "LOGLEVEL",
     .set = Store<ReadLogLevel, &LaunchConfig::log_level>},
};

}  // namespace

FlagGroup OutputFlags() {
  return {"Output and logs", kOutputFlags};
}

}  // namespace muster::launcher
