// "On SIGTERM my data loader was killed first, and the checkpoint failed": a program that saves on
// a stop signal gets it exactly once, whatever wraps it, and its children live until it has exited.
// Real wrappers, real traps, real signals: each wrapper is one rank of a group, and the group is
// stopped once for each signal.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "test/worker/group_fixture.h"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStopSignalNever = std::chrono::hours(1);
constexpr char kPython[] = "/usr/bin/python3";

// Saves for longer than two searches for leftovers take, then prints which signals it got, and
// whether its helper still runs.
constexpr char kTraining[] = R"(
import os, signal, subprocess, sys, time
helper = subprocess.Popen(["sleep", "10000"])
had = []
def hear(number, frame): had.append(signal.Signals(number).name)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
  signal.signal(number, hear)
open("ready." + os.environ["RANK"], "w").close()
def step_until(had_enough):
  while not had_enough():
    if helper.poll() is not None: had.append("helper is gone"); return
    time.sleep(0.01)
step_until(lambda: had)
if had == ["SIGUSR1"]:
  open("noticed." + os.environ["RANK"], "w").close()
  step_until(lambda: len(had) > 1)
end = time.time() + 0.9
step_until(lambda: time.time() > end)
try: print("saving", flush=True)  # somebody must still read this
except OSError: had.append("broken pipe")
with open("saved." + os.environ["RANK"], "w") as out: out.write(",".join(had) + "\n")
helper.kill()
)";

// Like `conda run` and accelerate's launcher: starts a program, waits for it, and returns its exit
// code.
constexpr char kPythonWrapper[] = R"(#!/usr/bin/python3
import subprocess, sys
sys.exit(subprocess.Popen(sys.argv[1:]).wait())
)";
// The same, but it kills the program when it is interrupted.
constexpr char kCallingWrapper[] = R"(#!/usr/bin/python3
import subprocess, sys
sys.exit(subprocess.call(sys.argv[1:]))
)";

struct Wrapper {
  std::string name;
  // "" for argv[0]: the wrapper is not installed.
  std::vector<std::string> argv;
  // What a background job or the child of an unknown wrapper gets in place of any signal, as a
  // leftover.
  bool hears_sigterm = false;
  // A notice kills the wrapper itself.
  bool dies_of_notice = false;
};

class StopSignalTest : public ReadGroupTest {
 protected:
  StopSignalTest() {
    dir_.Write("train.py", kTraining);
    const std::string p = absl::StrCat(kPython, " train.py");
    for (const std::string shell : {"sh", "bash"}) {
      const auto add = [&](const std::string& name, const std::string& script) -> Wrapper& {
        wrappers_.push_back({absl::StrCat(shell, ", ", name), {shell, "-c", script}});
        return wrappers_.back();
      };
      add("exec", "exec " + p);
      add("foreground", p + "; :");
      add("foreground, trap", "trap : TERM INT HUP USR1; " + p + "; :");
      add("foreground, trap that passes it on",
          "trap 'kill -TERM $!' TERM INT HUP USR1; sleep 10000 & " + p + "; kill $!");
      add("foreground, trap on exit", "trap : EXIT; " + p + "; :");
      add("foreground, ignored", "trap '' TERM INT HUP; " + p + "; :");
      add("foreground beside a background helper", "sleep 10000 & " + p + "; kill $!");
      add("background", p + " & wait").hears_sigterm = true;
      for (const char* number : {"TERM", "INT", "HUP", "USR1"}) {
        forwards_ += absl::StrCat("trap 'kill -", number, " $pid' ", number, "; ");
      }
      // A shell that has begun to wait waits again, as published entry points do.
      add("background, trap that passes it on",
          forwards_ + p + " & pid=$!; while kill -0 $pid 2>/dev/null; do wait $pid; done");
      forwards_.clear();
      add("pipe", p + " | cat; :");
      add("producer", "cat /dev/zero | " + p + "; :");
      add("producer, pipe", "cat /dev/zero | " + p + " | cat; :");
      add("producer of a loop", "echo 1 | while read line; do " + p + "; done");
      add("pipe into a loop", p + " | while read line; do echo $line; done");
      add("subshell", "(cd .; " + p + "; :) 2>&1; :");
      add("substitution", "text=$(" + p + "); :");
      add("two shells", shell + " -c '" + p + "; :'; :");
      add("timeout inside", "timeout 10000 " + p + "; :");
    }
    wrappers_.push_back(
        {"bash, process substitution", {"bash", "-c", "exec > >(cat) 2>&1; " + p + "; :"}});
    wrappers_.push_back({"bash, a pipe that is held open",
                         {"bash", "-c", "exec 3< <(sleep 10000); " + p + "; kill $!"}});
    wrappers_.push_back({"no wrapper", {kPython, "train.py"}});
    Script("script file", dir_.Write("run.sh", "#!/bin/bash\n" + p + "\ntrue\n", 0755), {});
    Script("bash and a file", "bash", {"run.sh"});
    for (const std::vector<std::string>& argv :
         std::vector<std::vector<std::string>>{{"env", "A=b"},
                                               {"nice"},
                                               {"nohup"},
                                               {"stdbuf", "-oL"},
                                               {"timeout", "10000"},
                                               {"timeout", "--foreground", "10000"},
                                               {"setsid", "--wait"},
                                               {"flock", "lock"},
                                               {"time", "-p"},
                                               {"numactl", "--localalloc"},
                                               {"strace", "-o", "trace"}}) {
      std::string program = Installed(argv[0]);
      if (program.empty()) continue;
      Script(argv[0], program, {argv.begin() + 1, argv.end()});
    }
    if (::geteuid() == 0 && ::access("/usr/sbin/runuser", X_OK) == 0) {
      Script("runuser", "/usr/sbin/runuser", {"-u", "root", "--"});
    }
    // Nsight is not installed here; use another program that starts one and waits, under its name.
    std::filesystem::copy_file(Installed("timeout"), dir_.Path("nsys"));
    Script("nsys", dir_.Path("nsys"), {"10000"});
    Script("conda run", dir_.Write("conda", kCallingWrapper, 0755), {});
    Script("accelerate", dir_.Write("accelerate", kPythonWrapper, 0755), {});
    wrappers_.back().hears_sigterm = wrappers_.back().dies_of_notice = true;
  }

  void Script(std::string name, std::string program, std::vector<std::string> args) {
    args.insert(args.begin(), std::move(program));
    if (args.back() != "run.sh" && name != "script file") {
      args.insert(args.end(), {kPython, "train.py"});
    }
    wrappers_.push_back({std::move(name), std::move(args)});
  }

  static std::string Installed(const std::string& program) {
    for (const char* directory : {"/usr/bin/", "/bin/"}) {
      if (::access((directory + program).c_str(), X_OK) == 0) return directory + program;
    }
    return "";
  }

  void StartAll() {
    std::vector<WorkerSpec> specs;
    for (std::size_t rank = 0; rank < wrappers_.size(); ++rank) {
      WorkerSpec spec = Sh(static_cast<int>(rank), "");
      spec.argv = {"sh", "-c", "cd '" + dir_.Path("") + "' && exec \"$@\"", "sh"};
      spec.argv.insert(spec.argv.end(), wrappers_[rank].argv.begin(), wrappers_[rank].argv.end());
      specs.push_back(spec);
    }
    Start(std::move(specs), {.grace = kStopSignalNever});
    AwaitFiles("ready");
  }
  void AwaitFiles(const std::string& kind, bool notice = false) {
    for (std::size_t rank = 0; rank < wrappers_.size(); ++rank) {
      if (notice && wrappers_[rank].dies_of_notice) continue;
      ASSERT_TRUE(test::RunUntil(
          io_, [&] { return std::filesystem::exists(dir_.Path(absl::StrCat(kind, ".", rank))); }))
          << kind << ": " << wrappers_[rank].name;
    }
  }
  // The ranks that have not saved.
  std::string Unsaved() const {
    std::string text;
    for (std::size_t rank = 0; rank < wrappers_.size(); ++rank) {
      if (Saved(rank).empty()) absl::StrAppend(&text, "not saved: ", wrappers_[rank].name, "\n");
    }
    for (const pid_t pid : test::ProcessesWith(mark_)) {
      absl::StrAppend(&text, pid, ": ", ReadAll(absl::StrCat("/proc/", pid, "/cmdline")), "\n");
    }
    return text;
  }
  std::string Saved(std::size_t rank) const {
    return ReadAll(dir_.Path(absl::StrCat("saved.", rank)));
  }

  std::vector<Wrapper> wrappers_;
  std::string forwards_;
};

class EachSignal : public StopSignalTest, public testing::WithParamInterface<int> {};

TEST_P(EachSignal, ProgramHearsOnceAndSavesWithWhatItHasStarted) {
  const int signal = GetParam();
  StartAll();
  group_->Stop({.first_signal = signal, .grace = kStopSignalNever});
  ASSERT_TRUE(RunUntilDone()) << Unsaved();
  for (std::size_t rank = 0; rank < wrappers_.size(); ++rank) {
    const std::string heard =
        wrappers_[rank].hears_sigterm && signal == SIGINT ? "SIGTERM" : base::SignalName(signal);
    // It is up to the wrapper whether it dies of the signal, so that its child gets one as a
    // leftover.
    if (wrappers_[rank].hears_sigterm && Saved(rank) == "SIGTERM\n") continue;
    EXPECT_EQ(Saved(rank), heard + "\n") << wrappers_[rank].name;
  }
}

INSTANTIATE_TEST_SUITE_P(StopSignals, EachSignal, testing::Values(SIGTERM, SIGINT, SIGHUP),
                         [](const auto& info) { return base::SignalName(info.param); });

// "SIGUSR1 killed wandb-core and ffmpeg, which do not know it."
TEST_F(StopSignalTest, NoticeReachesTheProgramAloneAndEndsNobody) {
  std::erase_if(wrappers_, [](const Wrapper& wrapper) { return wrapper.dies_of_notice; });
  StartAll();
  group_->ForwardSignal(SIGUSR1);
  AwaitFiles("noticed", true);
  EXPECT_EQ(group_->running(), static_cast<int>(wrappers_.size()));
  group_->Stop({.grace = kStopSignalNever});
  ASSERT_TRUE(RunUntilDone());
  for (std::size_t rank = 0; rank < wrappers_.size(); ++rank) {
    EXPECT_EQ(Saved(rank), "SIGUSR1,SIGTERM\n") << wrappers_[rank].name;
  }
}

}  // namespace
}  // namespace muster::worker
