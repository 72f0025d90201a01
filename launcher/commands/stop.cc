#include "launcher/commands/commands.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/cli/readers.h"
#include "base/failure.h"
#include "base/unique_fd.h"
#include "launcher/cli/command_run.h"
#include "launcher/machine/environment.h"
#include "launcher/run/detached_run.h"
#include "launcher/run/run_registry.h"

namespace muster::launcher {
namespace {

using Clock = std::chrono::steady_clock;

struct StopArgs : base::CommandArgs {
  std::optional<std::chrono::milliseconds> timeout;
};

constexpr base::Flag kStopFlags[] = {
    {.name = "--timeout",
     .value_name = "SECONDS",
     .help = "Wait no longer than this; the run keeps stopping.",
     .set = base::Store<base::ReadSeconds, &StopArgs::timeout>},
};

int FailStop(const std::string& why, int exit_code) {
  return Fail("muster stop", why, exit_code);
}

struct Target {
  std::string run_id;
  bool is_ending = false;
  // Its pid is of another PID namespace.
  bool is_elsewhere = false;
};
using Targets = std::map<pid_t, Target>;

// The processes of runs that have that id, or that pid.
Targets FindRunsBy(const std::string& name, bool by_id, const Environment& environment) {
  Targets found, launched;
  for (const RunInfo& run : ListRuns(RunsDirs(RunsPlaceOf(environment))).runs) {
    if (name != (by_id ? run.run_id : absl::StrCat(run.pid))) continue;
    (run.launched ? launched : found)
        .emplace(run.pid,
                 Target{.run_id = run.run_id, .is_ending = run.state == RunState::kStopping});
  }
  // Those that have just begun are not in the list yet.
  for (const FoundRun& run : FindDetached(DetachedDir(environment), name)) {
    if (run.has_id != by_id) continue;
    const auto end = DetachedEnd::Open(run);
    if (!end.ok() || !end->lives()) continue;
    const bool is_elsewhere = !end->IsOf(run.pid);
    // It may have ended in between.
    if (is_elsewhere && !end->lives()) continue;
    const auto [entry, is_new] =
        found.emplace(run.pid, Target{.run_id = name, .is_elsewhere = is_elsewhere});
    if (!is_new && !is_elsewhere) entry->second.is_elsewhere = false;
  }
  // Those get the signal from the run that has started them, and a second one would take their
  // workers' time to end.
  return found.empty() ? launched : found;
}

// A number may be a run id, as Slurm's jobs have it: then it is no pid.
Targets FindRuns(const std::string& name, const Environment& environment) {
  Targets found = FindRunsBy(name, /*by_id=*/true, environment);
  return found.empty() ? FindRunsBy(name, /*by_id=*/false, environment) : found;
}

// A pid that a run of another PID namespace has left is anybody's here.
bool IsMuster(pid_t pid) {
  std::error_code error;
  const std::string program =
      std::filesystem::read_symlink(absl::StrCat("/proc/", pid, "/exe"), error).filename();
  return !error && absl::StartsWith(program, "muster");
}

struct Stopped {
  base::UniqueFd process;
  std::string text;  // "run 'x' (pid 17)"
  bool is_ending = false;
};

// Each once, also if it is named twice; `missing` is the first name that nobody has.
Targets FindAll(const std::vector<std::string>& names, const Environment& environment,
                std::optional<std::string>& missing) {
  Targets all;
  for (const std::string& name : names) {
    Targets found = FindRuns(name, environment);
    if (found.empty() && !missing) missing = name;
    all.merge(found);
  }
  return all;
}

// A second signal would take the workers' time to end.
bool AskToEnd(const Stopped& run) {
  return run.is_ending ||
         ::syscall(SYS_pidfd_send_signal, run.process.get(), SIGTERM, nullptr, 0) == 0 ||
         errno == ESRCH;
}

// False: not by then.
bool AwaitEnd(int process, std::optional<Clock::time_point> deadline) {
  for (;;) {
    int wait_ms = -1;
    if (deadline) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      wait_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
    }
    pollfd ended = {process, POLLIN, 0};
    const int ready = ::poll(&ended, 1, wait_ms);
    if (ready > 0) return true;
    if (ready == 0) return false;
  }
}

int Stop(const StopArgs& args) {
  std::optional<std::string> missing;
  const Environment environment = ReadEnvironment(environ);
  const Targets targets = FindAll(args.operands, environment, missing);
  // What it printed stays when it has ended.
  if (missing && !FindDetached(DetachedDir(environment), *missing).empty()) {
    return FailStop(
        absl::StrCat("run '", *missing, "' has ended; `muster attach ", *missing, "` shows how"),
        kExitBadInput);
  }
  if (missing) {
    return FailStop(
        absl::StrCat("there is no run '", *missing,
                     "' of yours on this machine; `muster ps` lists the runs of this machine"),
        kExitBadInput);
  }
  std::vector<Stopped> stopped;
  for (const auto& [pid, target] : targets) {
    Stopped run{.process = base::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
                .text = absl::StrCat("run '", target.run_id, "' (pid ", pid, ")"),
                .is_ending = target.is_ending};
    // Opened first: it is this process that is looked at and signalled.
    if (target.is_elsewhere || !run.process.valid() || !IsMuster(pid)) {
      return FailStop(absl::StrCat(run.text, " is in another container; run `muster stop` there"),
                      kExitNodeFailed);
    }
    stopped.push_back(std::move(run));
  }
  for (const Stopped& run : stopped) {
    if (!AskToEnd(run)) {
      return FailStop(absl::StrCat("signal ", run.text, ": ", base::SystemCause()),
                      kExitNodeFailed);
    }
  }
  std::optional<Clock::time_point> deadline;
  if (args.timeout) deadline = Clock::now() + *args.timeout;
  std::string said;
  for (const Stopped& run : stopped) {
    if (!AwaitEnd(run.process.get(), deadline)) {
      return FailStop(absl::StrCat(run.text, " did not stop within the timeout; still stopping"),
                      kExitNo);
    }
    absl::StrAppend(&said, run.text, " has ended\n");
  }
  return PrintOutput("muster stop", said);
}

}  // namespace

base::Command StopCommand() {
  return {
      .name = "stop",
      .summary = "end runs on this machine",
      .operands = "RUN...",
      .about =
          R"(Ends your runs on this machine as Ctrl-C ends one in a terminal, and waits until they have ended:
workers get SIGTERM, and have --shutdown-timeout of their run. RUN is a run id, or a pid where no run
has that id (`muster ps`). A run that was started with --hosts ends on all of its hosts. One that is
ending already is only waited for. If a RUN is not there, none is ended.
)",
      .end =
          R"(Exit codes: 0 they have ended; 1 one has not in time; 2 the command line is wrong, or there is no
such run; 4 one may not be signalled.
)",
      .missing = "no run is named; `muster ps` lists the runs of this machine",
      .flags = base::WithHelp({kStopFlags}),
      .run = WithArgs<StopArgs, Stop>};
}

}  // namespace muster::launcher
