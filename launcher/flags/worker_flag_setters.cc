// The setters of flags that are about the workers: what they run on, how they end, and where their
// output goes.
#include <algorithm>
#include <csignal>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/seconds.h"
#include "base/signal_names.h"
#include "launcher/flags/filter_list.h"
#include "launcher/flags/flag_setters.h"

namespace muster::launcher {
namespace {

// For a flag that is accepted and has no effect here: only its value is checked.
Problem CheckChoice(absl::string_view value, std::initializer_list<absl::string_view> choices,
                    absl::string_view otherwise) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return std::nullopt;
  return std::string(otherwise);
}

}  // namespace

Problem SetTotalWorkers(absl::string_view value, RunFlags& flags) {
  int number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < 1) {
    return "is not a number of workers; give a whole number from 1";
  }
  flags.total_workers = number;
  return std::nullopt;
}

Problem SetDevices(absl::string_view value, RunFlags& flags) {
  // Which devices there are, flags.cc asks.
  flags.devices = std::string(value);
  return std::nullopt;
}

Problem SetNumaBinding(absl::string_view value, RunFlags& flags) {
  const std::optional<NumaMode> mode = ParseNumaMode(value);
  if (!mode) return "is not a way to bind; use node, socket, exclusive or core-complex";
  flags.numa_binding = mode;
  return std::nullopt;
}

Problem SetWorkerStore(absl::string_view value, RunFlags& flags) {
  if (value != "agent" && value != "worker") {
    return "is nobody who could serve the store; use agent or worker";
  }
  flags.worker_store = value == "agent" ? WorkerStore::kAgent : WorkerStore::kWorker;
  return std::nullopt;
}

Problem SetStartMethod(absl::string_view value, RunFlags&) {
  return CheckChoice(value, {"spawn", "fork", "forkserver"},
                     "is not a start method; use spawn, fork or forkserver");
}

Problem SetLocalRankStyle(absl::string_view value, RunFlags& flags) {
  if (value != "dash" && value != "underscore") {
    return "is not a style of the flag; use dash or underscore";
  }
  flags.local_rank_flag = value == "dash" ? "--local-rank" : "--local_rank";
  return std::nullopt;
}

Problem SetSignalsToHandle(absl::string_view value, RunFlags& flags) {
  std::vector<int> signals;
  for (absl::string_view name : absl::StrSplit(value, ',', absl::SkipWhitespace())) {
    name = absl::StripAsciiWhitespace(name);
    const std::optional<int> signal = base::ParseSignal(name);
    if (!signal) {
      // torchrun goes on, too: a list written for another system must not end the job here.
      flags.notes.push_back(
          absl::StrCat("--signals-to-handle: there is no signal ", name, " here; left out"));
    } else if (*signal == SIGKILL || *signal == SIGSTOP || *signal == SIGCHLD) {
      return absl::StrCat("names ", name, ", which cannot be handled; leave it out");
    } else if (std::find(signals.begin(), signals.end(), *signal) == signals.end()) {
      signals.push_back(*signal);
    }
  }
  if (signals.empty()) return "names no signal; write names such as SIGTERM,SIGINT";
  flags.stop_signals = std::move(signals);
  return std::nullopt;
}

Problem SetMonitorInterval(absl::string_view value, RunFlags&) {
  const auto interval = base::ParseSeconds(value);
  if (!interval || interval->count() == 0) return "is not a time; give a number of seconds above 0";
  return std::nullopt;
}

Problem SetExitBarrierTimeout(absl::string_view value, RunFlags&) {
  if (!base::ParseSeconds(value)) return "is not a time; give a number of seconds from 0";
  return std::nullopt;
}

Problem SetLocalRanksFilter(absl::string_view value, RunFlags& flags) {
  std::vector<int> ranks;
  for (const absl::string_view entry : absl::StrSplit(value, ',', absl::SkipWhitespace())) {
    int rank = 0;
    if (!absl::SimpleAtoi(entry, &rank) || rank < 0) {
      return "is not a list of local ranks; write numbers from 0 with commas between";
    }
    ranks.push_back(rank);
  }
  flags.local_ranks_filter = std::move(ranks);
  return std::nullopt;
}

Problem SetPrefixTemplate(absl::string_view value, RunFlags& flags) {
  flags.prefix_template = std::string(value);
  return std::nullopt;
}

Problem SetStdoutFilters(absl::string_view value, RunFlags& flags) {
  flags.stdout_filters = SplitFilters(value);
  return std::nullopt;
}

Problem SetStderrFilters(absl::string_view value, RunFlags& flags) {
  flags.stderr_filters = SplitFilters(value);
  return std::nullopt;
}

Problem SetLogsSpecs(absl::string_view value, RunFlags&) {
  return CheckChoice(value, {"default"},
                     "is a Python plug-in of torchrun's, which cannot be loaded here; use "
                     "--log-dir, --redirects and --tee");
}

Problem SetEventLogHandler(absl::string_view value, RunFlags&) {
  return CheckChoice(value, {"null", "dynamic_rendezvous"},
                     "is an event handler of torchrun's, which Muster has not; use "
                     "--event-log=FILE for programs, or --log-level=info");
}

Problem SetEventLog(absl::string_view value, RunFlags& flags) {
  flags.event_log = std::string(value);
  return std::nullopt;
}

Problem SetPrintCompletion(absl::string_view value, RunFlags& flags) {
  if (value != "bash" && value != "zsh" && value != "fish") {
    return "is not a shell that completion can be printed for; use bash, zsh or fish";
  }
  flags.print_completion = std::string(value);
  return std::nullopt;
}

}  // namespace muster::launcher
