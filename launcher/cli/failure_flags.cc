// The flags that say what becomes of failures, and how a run ends.
#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/durations.h"
#include "base/text.h"
#include "launcher/cli/flag_table.h"
#include "launcher/cli/launch_config.h"
#include "rendezvous/net/endpoint.h"
#include "worker/hang/process_evidence.h"

namespace muster::launcher {
namespace {

using rendezvous::RestartPolicy;
using std::chrono::milliseconds;

Problem SetRestartDelay(absl::string_view value, RunFlags& flags) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(value, absl::MaxSplits(':', 1));
  const auto first = base::ParseSeconds(parts.first);
  const auto longest = absl::StrContains(value, ':') ? base::ParseSeconds(parts.second) : first;
  constexpr std::chrono::hours kLongest(24);
  if (!first || !longest || *longest < *first || *longest > kLongest) {
    return "is not a delay; give seconds, or FIRST:LONGEST with FIRST <= LONGEST <= 86400";
  }
  flags.options.restart.delay = *first;
  flags.options.restart.longest_delay = *longest;
  return std::nullopt;
}

absl::StatusOr<std::vector<ExitCodeRange>> ReadExitCodes(absl::string_view text) {
  std::vector<ExitCodeRange> ranges;
  for (const absl::string_view entry : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(entry, absl::MaxSplits('-', 1));
    ExitCodeRange range;
    const bool is_range = absl::StrContains(entry, '-');
    if (!absl::SimpleAtoi(ends.first, &range.first) ||
        !absl::SimpleAtoi(is_range ? ends.second : ends.first, &range.last) || range.first < 1 ||
        range.last > 255 || range.last < range.first) {
      return absl::InvalidArgumentError(
          "is not a list of exit codes; write numbers from 1 to 255 and ranges, such as 2,64-78");
    }
    ranges.push_back(range);
  }
  return ranges;
}

absl::StatusOr<std::string> ReadStackCommand(absl::string_view text) {
  const auto command = worker::StackCommand::Parse({text.data(), text.size()});
  if (!command.ok()) return command.status();
  return std::string(text);
}

absl::StatusOr<double> ReadShare(absl::string_view text) {
  double share = 0;
  if (absl::SimpleAtod(text, &share) && share >= 0 && share <= 1000) return share;
  return absl::InvalidArgumentError("is not a fraction; give a number of 0 or more, such as 0.25");
}

// For /bin/sh; blanks alone are no command.
absl::StatusOr<std::string> ReadCommand(absl::string_view text) {
  return std::string(absl::StripAsciiWhitespace(text));
}

// How long a worker may take to end.
absl::StatusOr<milliseconds> ReadGrace(absl::string_view text) {
  if (text == "inf" || text == "infinite") return milliseconds::max();
  const auto grace = base::ParseSeconds(text);
  if (grace) return *grace;
  return absl::InvalidArgumentError("is not a number of seconds; give 0 or more, or inf");
}

Problem SetSignalsToHandle(absl::string_view value, RunFlags& flags) {
  std::vector<int> signals;
  for (absl::string_view name : absl::StrSplit(value, ',', absl::SkipWhitespace())) {
    name = absl::StripAsciiWhitespace(name);
    const std::optional<int> signal = base::ParseSignal(name);
    if (!signal) {
      // torchrun goes on, too: a list written for another system must not end the job here.
      flags.options.notes.push_back(absl::StrCat("--signals-to-handle: there is no signal ", name,
                                                 " on this system; ignored"));
    } else if (*signal == SIGKILL || *signal == SIGSTOP || *signal == SIGCHLD) {
      return absl::StrCat("names ", name, ", which cannot be handled; leave it out");
    } else if (std::find(signals.begin(), signals.end(), *signal) == signals.end()) {
      signals.push_back(*signal);
    }
  }
  if (signals.empty()) return "is not a list of signals; write names such as SIGTERM,SIGINT";
  flags.options.stop_signals = std::move(signals);
  return std::nullopt;
}

constexpr Flag kFailureFlags[] = {
    {.name = "--max-restarts",
     .value_name = "N",
     .help = "How often the job may restart all of its workers because one has failed.",
     .default_text = "0",
     .set = Store<ReadNumber, &LaunchOptions::max_restarts>},
    {.name = "--restart-window",
     .ours = true,
     .value_name = "SECONDS",
     .help = "Only restarts within the last SECONDS count against --max-restarts.",
     .default_text = "0: all count",
     .set = Store<ReadSeconds, &LaunchOptions::restart, &RestartPolicy::window>},
    {.name = "--restart-delay",
     .ours = true,
     .value_name = "SECONDS|FIRST:LONGEST",
     .help = "How long to wait before a restart, doubled for each further restart in a row, up to "
             "LONGEST.",
     .default_text = "0",
     .set = Apply<SetRestartDelay>},
    {.name = "--no-progress-limit",
     .ours = true,
     .value_name = "N",
     .help = "End the job when the same rank fails in the same way N times in a row before its "
             "first beat, as another restart would not help.",
     .default_text = "0: restart as often as --max-restarts says",
     .set = Store<ReadNumber, &LaunchOptions::restart, &RestartPolicy::no_progress_limit>},
    {.name = "--no-retry-exit-codes",
     .ours = true,
     .value_name = "N,N-M,...",
     .help =
         "A worker that exits with one of these codes ends the job, whatever --max-restarts says.",
     .default_text = "none",
     .set = Store<ReadExitCodes, &LaunchOptions::final_exit_codes>},
    {.name = "--retry-usage-errors",
     .kind = Flag::Kind::kSwitch,
     .ours = true,
     .help = "Restart, as torchrun does, also after a failure that every start would repeat: the "
             "script cannot be compiled or is not there, its arguments are wrong, or all workers "
             "of a node end with code 2 within a minute and before their first beat.",
     .default_text = "off: such a failure ends the job",
     .set = Store<ReadSwitch, &LaunchOptions::retry_usage_errors>},
    {.name = "--hang-timeout",
     .ours = true,
     .value_name = "SECONDS",
     .help = "How long a worker may go without a beat, which is a datagram 'beat RANK [STEP]' to "
             "the Unix socket in MUSTER_BEAT_SOCKET. After that, evidence is collected and "
             "--hang-action follows.",
     .default_text = "0: workers are not watched",
     .set = Store<ReadSeconds, &LaunchOptions::hang, &HangPolicy::timeout>},
    {.name = "--hang-first-beat-timeout",
     .ours = true,
     .value_name = "SECONDS",
     .help = "With --hang-timeout: how long a worker may take until its first beat.",
     .default_text = "0: a worker that never beats is not watched, unless output counts",
     .set = Store<ReadSeconds, &LaunchOptions::hang, &HangPolicy::first_beat_timeout>},
    {.name = "--liveness",
     .ours = true,
     .value_name = "beats|output",
     .help = "What counts as a sign of life: beats only, or output as well. With output, a worker "
             "is watched from its start.",
     .default_text = "beats",
     .set = Store<ReadWord<kHangSigns>, &LaunchOptions::hang, &HangPolicy::output_counts>},
    {.name = "--hang-action",
     .ours = true,
     .value_name = "restart|end|report",
     .help = "What happens to a hung worker: it is killed and the job restarts, it is killed and "
             "the job ends, or it is only reported.",
     .default_text = "restart",
     .set = Store<ReadWord<kHangActions>, &LaunchOptions::hang, &HangPolicy::action>},
    {.name = "--stack-command",
     .ours = true,
     .value_name = "COMMAND",
     .help = "The command that prints the stacks of process {pid}.",
     .default_text = "py-spy, eu-stack or gdb, whichever is installed",
     .set = Store<ReadStackCommand, &LaunchOptions::hang, &HangPolicy::stack_command>},
    {.name = "--straggler-threshold",
     .ours = true,
     .value_name = "SHARE",
     .help = "Report stragglers: ranks whose steps, not counting the time spent waiting for "
             "others, take longer than the median rank's by more than this fraction, several times "
             "in a row. 0.25 is a quarter longer; 0: report none.",
     .default_text = "0.3",
     .set = Store<ReadShare, &LaunchOptions::straggler_threshold>},
    {.name = "--health-check",
     .ours = true,
     .value_name = "COMMAND",
     .help = "A shell command that must succeed every time before this node joins a round; "
             "otherwise the node does not take part.",
     .default_text = "none",
     .set = Store<ReadCommand, &LaunchOptions::health, &HealthPolicy::command>},
    {.name = "--health-check-timeout",
     .ours = true,
     .value_name = "SECONDS",
     .help = "How long the health check may take.",
     .default_text = "30",
     .set = Store<ReadSecondsAboveZero, &LaunchOptions::health, &HealthPolicy::timeout>},
    {.name = "--drain-interval",
     .ours = true,
     .value_name = "SECONDS",
     .help = "In Slurm's jobs of several nodes: how often each node asks whether it is being "
             "drained; with N nodes at most every N seconds. If the job has more than MIN "
             "nodes of --nnodes=MIN:MAX, a node that is drained leaves it. 0: never ask.",
     .default_text = "60",
     .set = Store<ReadSeconds, &LaunchOptions::drain_interval>},
    {.name = "--health-port",
     .ours = true,
     .value_name = "[HOST:]PORT",
     .help = "Answer GET /healthz over HTTP: 200 while this process does its work; and GET "
             "/healthz/ready: 200 while the workers run, else 503. It reveals nothing else and "
             "needs no token. Listens on loopback unless HOST names an address of this machine.",
     .default_text = "not answered",
     .set = Store<rendezvous::ParseLocalEndpoint, &LaunchOptions::health_endpoint>},
    {.name = "--http",
     .ours = true,
     .value_name = "[HOST:]PORT",
     .help = "Where this node hosts the rendezvous: show the job over HTTP, on a live page and as "
             "/metrics and /api/v1/jobs, to clients that send the token, or the one that `muster "
             "token metrics` derives from it. On loopback unless --insecure is given.",
     .default_text = "not shown",
     .set = Store<rendezvous::ParseLocalEndpoint, &LaunchOptions::http>},
    {.name = "--shutdown-timeout",
     .value_name = "SECONDS",
     .help = "How long a worker may take to stop once it is asked to; then it is killed. Processes "
             "that it leaves running get as long. inf: wait forever.",
     .default_text = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT or 30",
     .variables = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
     .set = Store<ReadGrace, &LaunchOptions::shutdown_timeout>},
    {.name = "--leftovers",
     .ours = true,
     .value_name = "wait|stop|keep",
     .help =
         "What happens to processes that workers leave running, such as an upload, once all "
         "workers have succeeded. wait: they get --shutdown-timeout to finish and are then "
         "stopped. stop: they are stopped at once. keep: they are left running. After a failure "
         "or a signal they are always stopped.",
     .default_text = "wait",
     .set = Store<ReadWord<kLeftoverPolicies>, &LaunchOptions::leftovers>},
    {.name = "--exit-code",
     .ours = true,
     .value_name = "torchrun|worker",
     .help = "When a worker fails, exit with 1 or with the worker's own code (128+n for signal n).",
     .default_text = "torchrun",
     .set = Store<ReadWord<kExitCodePolicies>, &LaunchOptions::exit_code>},
    {.name = "--signals-to-handle",
     .value_name = "SIGNAL,...",
     .help = "Signals to this process that end the run: the workers, or the programs that a "
             "wrapper such "
             "as a shell script runs for them, get the same signal, and SIGKILL after "
             "--shutdown-timeout. SIGUSR1 and SIGUSR2 are passed on unless they are listed here.",
     .default_text = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .set = Apply<SetSignalsToHandle>},
    {.name = "--monitor-interval",
     .kind = Flag::Kind::kIgnored,
     .value_name = "SECONDS",
     .help = "The kernel reports the exit of a worker at once; nothing is polled.",
     .set = Check<ReadSecondsAboveZero>},
    {.name = "--exit-barrier-timeout",
     .kind = Flag::Kind::kIgnored,
     .value_name = "SECONDS",
     .help = "A node that is done waits for the job's verdict.",
     .set = Check<ReadSeconds>},
};

}  // namespace

FlagGroup FailureFlags() {
  return {"Failures and the end", kFailureFlags};
}

}  // namespace muster::launcher
