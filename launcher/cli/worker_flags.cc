// The flags that say how many nodes and workers there are, and what they run on.
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "launcher/cli/flag_table.h"
#include "launcher/cli/launch_config.h"
#include "launcher/machine/nproc.h"

namespace muster::launcher {
namespace {

Problem SetNodes(absl::string_view value, RunFlags& flags) {
  const std::vector<absl::string_view> parts = absl::StrSplit(value, ':');
  int min = 0;
  int max = 0;
  if (parts.size() > 2 || !absl::SimpleAtoi(parts.front(), &min) ||
      !absl::SimpleAtoi(parts.back(), &max)) {
    return "is not a number of nodes; write N or MIN:MAX";
  }
  if (min < 1) return "asks for less than one node; write N or MIN:MAX with numbers from 1";
  if (min > max) return "has its minimum above its maximum; write MIN:MAX with MIN <= MAX";
  flags.options.min_nodes = min;
  flags.options.max_nodes = max;
  flags.nodes_given = true;
  return std::nullopt;
}

Problem SetNproc(absl::string_view value, RunFlags& flags) {
  // A machine that has everything: what is wrong there is wrong everywhere. flags.cc asks the real
  // one.
  const auto count = ParseNproc(value, Machine{.cpus = 1, .nvidia_devices = 1}, {});
  if (!count.ok()) return std::string(count.status().message());
  flags.nproc_per_node = std::string(value);
  flags.nproc_given = true;
  return std::nullopt;
}

absl::StatusOr<std::string> ReadRole(absl::string_view text) {
  // Scripts write --role=$ROLE with ROLE empty.
  return text.empty() ? std::string() : ReadName("role", text);
}

constexpr Flag kNodeFlags[] = {
    {.name = "--nnodes",
     .value_name = "N|MIN:MAX",
     .help = "How many nodes take part. With MIN:MAX the job runs on as many as have joined.",
     .default_text = "1; under Slurm its nodes, where no endpoint is given either",
     .set = Apply<SetNodes>},
    {.name = "--nproc-per-node",
     .short_name = "-ppn",
     .value_name = "N|cpu|gpu|auto",
     .help = "Workers on this node: a number, one per CPU, one per GPU, or (auto) one per GPU if "
             "there are any and otherwise one per CPU. Nodes may differ.",
     .default_text = "1; under Slurm as many as the job has GPUs on the node",
     .set = Apply<SetNproc>},
    {.name = "--total-workers",
     .short_name = "-n|-np",
     .ours = true,
     .value_name = "N",
     .help = "Workers on all nodes together, as with mpirun. The number per node follows from it, "
             "or, with --nproc-per-node, the number of nodes.",
     .default_text = "not given",
     .set = Store<ReadNumberAboveZero, &RunFlags::total_workers>},
    {.name = "--node-rank",
     .value_name = "N",
     .help = "This node's place in rank order: with --rdzv-endpoint a preference, with "
             "--master-addr the rank itself.",
     .default_text = "SLURM_NODEID or JOB_COMPLETION_INDEX if set and no topology is known",
     .set = Store<ReadNumber, &LaunchOptions::node_rank>},
    {.name = "--topology",
     .ours = true,
     .value_name = "RACK/HOST",
     .help = "Where this node is, the outermost label first. Nodes whose labels begin alike get "
             "neighbouring ranks.",
     .default_text = "the switches in SLURM_TOPOLOGY_ADDR if set",
     .set = Store<ReadText, &LaunchOptions::topology>},
    {.name = "--role",
     .value_name = "NAME",
     .help = "The role of this node's workers: their ROLE_NAME, and their name in output prefixes.",
     .default_text = "default",
     .set = Store<ReadRole, &LaunchOptions::role>},
    {.name = "--devices",
     .ours = true,
     .value_name = "LIST",
     .help = "The GPUs for this node's workers, such as 4,5 or 0-3 or UUIDs. Checks that they "
             "exist and "
             "sets CUDA_VISIBLE_DEVICES.",
     .default_text = "what CUDA_VISIBLE_DEVICES says",
     .set = Store<ReadText, &RunFlags::devices>},
    {.name = "--virtual-local-rank",
     .kind = Flag::Kind::kSwitch,
     .help = "Each worker sees a single GPU, its own, as device 0, and has LOCAL_RANK 0.",
     .set = Store<ReadSwitch, &LaunchOptions::virtual_local_rank>},
    {.name = "--numa-binding",
     .has_variable = false,
     .value_name = "node|socket|exclusive|core-complex",
     .help = "Bind each worker to CPUs near its GPU: all of the NUMA node, all of the socket, its "
             "own share of the node's cores, or the cores that share one cache.",
     .default_text = "not bound",
     .set = Store<ReadWord<kNumaModes>, &LaunchOptions::numa_binding>},
};

// The flags that say what each worker runs.

// How the script of `muster launch` is told its local rank.
constexpr Word<const char*> kLocalRankFlags[] = {{"dash", "--local-rank"},
                                                 {"underscore", "--local_rank"}};

// torchrun's; the values mean nothing here.
constexpr Word<int> kStartMethods[] = {{"spawn", 0}, {"fork", 0}, {"forkserver", 0}};

constexpr Flag kProgramFlags[] = {
    {.name = "--module",
     .short_name = "-m",
     .kind = Flag::Kind::kSwitch,
     .help = "The script is a Python module, as with `python -m`.",
     .set = Store<ReadSwitch, &RunFlags::module>},
    {.name = "--no-python",
     .kind = Flag::Kind::kSwitch,
     .help = "The script is a command; run it as it is.",
     .default_text = "off; not needed for an executable or a shell script",
     .set = Store<ReadSwitch, &RunFlags::no_python>},
    {.name = "--run-path",
     .kind = Flag::Kind::kSwitch,
     .help = "Run the script with runpy.run_path(). Its exceptions go to its error file.",
     .set = Store<ReadSwitch, &RunFlags::run_path>},
    {.name = "--start-method",
     .kind = Flag::Kind::kIgnored,
     .value_name = "spawn|fork|forkserver",
     .help = "Every worker is a process of its own.",
     .set = Check<ReadWord<kStartMethods>>},
    {.name = "--use-env",
     .kind = Flag::Kind::kSwitch,
     .only_for = "launch",
     .help = "Do not pass --local-rank to the script; it reads LOCAL_RANK.",
     .set = Store<ReadSwitch, &RunFlags::use_env>},
    {.name = "--local-rank-style",
     .only_for = "launch",
     .ours = true,
     .value_name = "dash|underscore",
     .help = "Whether the script gets --local-rank=N or --local_rank=N.",
     .default_text = "dash",
     .set = Store<ReadWord<kLocalRankFlags>, &RunFlags::local_rank_flag>},
};

// The flags that say where output goes, and what Muster itself says.

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
     .help = "Where logs and error files go. With /dev/null there are none, and all output stays "
             "on the console.",
     .default_text = "a fresh muster_* directory in TMPDIR, or in /tmp where that cannot be used",
     .set = Store<ReadText, &LaunchOptions::log_dir>},
    {.name = "--redirects",
     .short_name = "-r",
     .value_name = "CHOICE",
     .help = "Output that goes to a file instead of the console: 0 none, 1 stdout, 2 stderr, 3 "
             "both; or for certain local ranks, such as 0:3,1:2.",
     .default_text = "0",
     .set = Store<ParseRedirects, &LaunchOptions::redirects>},
    {.name = "--tee",
     .short_name = "-t",
     .value_name = "CHOICE",
     .help = "Output that goes to a file and, with a prefix on each line, to the console. Values "
             "as for --redirects.",
     .default_text = "0",
     .set = Store<ParseRedirects, &LaunchOptions::tee>},
    {.name = "--local-ranks-filter",
     .value_name = "N,...",
     .help = "Show only the output of these local ranks on the console. Files are not affected.",
     .default_text = "all",
     .set = Store<ReadRanks, &LaunchOptions::local_ranks_filter>},
    {.name = "--prefix-lines",
     .kind = Flag::Kind::kSwitch,
     .ours = true,
     .help =
         "Put the prefix of tee'd lines before every line on the console, also where nothing is "
         "tee'd.",
     .default_text = "off; on with --hosts",
     .set = Store<ReadSwitch, &LaunchOptions::prefix_lines>},
    {.name = "--log-line-prefix-template",
     .value_name = "TEXT",
     .help = "The prefix of each tee'd line. It may contain ${role_name}, ${rank}, ${local_rank}, "
             "${hostname}, ${pid} and ${time}.",
     .default_text = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE or [${role_name}${local_rank}]:",
     .variables = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
     .set = Store<ReadText, &LaunchOptions::prefix_template>},
    {.name = "--duplicate-stdout-filters",
     .value_name = "TEXT,...",
     .help = "Tee'd lines of stdout that contain one of these texts also go to "
             "filtered_stdout.log. Write ,, for a comma.",
     .default_text = "none",
     .set = Store<ReadFilters, &LaunchOptions::stdout_filters>},
    {.name = "--duplicate-stderr-filters",
     .value_name = "TEXT,...",
     .help = "The same for stderr and filtered_stderr.log.",
     .default_text = "none",
     .set = Store<ReadFilters, &LaunchOptions::stderr_filters>},
    {.name = "--logs-specs",
     .kind = Flag::Kind::kIgnored,
     .has_variable = false,
     .value_name = "default",
     .help = "Log plug-ins in Python cannot be loaded; see --log-dir, --redirects and --tee.",
     .set = Apply<CheckLogsSpecs>},
    {.name = "--event-log-handler",
     .kind = Flag::Kind::kIgnored,
     .value_name = "NAME",
     .help = "Event handlers in Python cannot be loaded; see --event-log and --log-level=info.",
     .set = Apply<CheckEventLogHandler>},
    {.name = "--event-log",
     .ours = true,
     .value_name = "FILE",
     .help = "Append what happens on this node to FILE, for programs to read: one JSON object per "
             "line. `muster replay` shows it.",
     .default_text = "none",
     .set = Store<ReadText, &LaunchOptions::event_log>},
    {.name = "--log-level",
     .ours = true,
     .value_name = "debug|info|warning|error",
     .help = "How much Muster itself logs to stderr.",
     .default_text = "LOGLEVEL or warning",
     .variables = "LOGLEVEL",
     .set = Store<ReadLogLevel, &LaunchOptions::log_level>},
};

}  // namespace

FlagGroup NodeFlags() {
  return {"Nodes and workers", kNodeFlags};
}

FlagGroup ProgramFlags() {
  return {"What each worker runs", kProgramFlags};
}

FlagGroup OutputFlags() {
  return {"Output and logs", kOutputFlags};
}

}  // namespace muster::launcher
