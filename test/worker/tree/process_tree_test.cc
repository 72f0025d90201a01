// Processes started by workers end with them, even in their own sessions or with other parents.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "test/worker/group_fixture.h"
#include "worker/process/process_info.h"
#include "worker/tree/cgroup.h"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;

// So long that a test that waits for it fails by its deadline.
constexpr milliseconds kNever = std::chrono::hours(1);
constexpr milliseconds kShort(50);

class ProcessTreeTest : public ReadGroupTest {
 protected:
  // A shell command that starts `script` as a daemon: its parents are gone and it has a session of
  // its own.
  static std::string Daemon(const std::string& script) {
    return "setsid sh -c 'setsid sh -c \"" + script + "\" &' & wait $!;";
  }

  static bool IsSubreaper() {
    int subreaper = 0;
    return ::prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper != 0;
  }

  static std::size_t OwnZombies() {
    const std::vector<ProcessInfo> all = ReadProcesses();
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const auto& info) {
      return info.zombie && info.parent == ::getpid();
    }));
  }
};

// "My checkpoint was cut off: the shell around my python exited on SIGTERM, and python was killed."
TEST_F(ProcessTreeTest, ShellThatEndsAtOnceDoesNotTakeTheGraceFromItsChild) {
  const std::string go = dir_.Path("go");
  Start({Sh(0, "sh -c 'trap \"while [ ! -e " + go + " ]; do sleep 0.01; done; echo saved; exit\" " +
                   "TERM; echo ready; while :; do sleep 0.01; done'; :")});
  ASSERT_TRUE(RunUntilOut("ready"));
  group_->Stop({.grace = kNever});
  ASSERT_TRUE(test::RunUntil(io_, [&] { return group_->running() == 0; }));
  EXPECT_TRUE(results_.empty()) << "its child is not done";
  dir_.Write("go", "");
  ASSERT_TRUE(RunUntilDone());
  EXPECT_TRUE(RunUntilOut("saved"));
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGTERM);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ProcessTreeTest, ProcessesInOtherSessionsGetOneSignalWhenTheirWorkerHasEnded) {
  const std::string report =
      "for s in USR1 TERM; do trap \"echo one $s; kill $!; exit\" $s; done; echo ready; "
      "sleep 10000 & wait";
  const std::string script = dir_.Write("report", "#!/bin/sh\n" + report + "\n", 0755);
  Start({Sh(0, "setsid " + script + " & " + Daemon(script) + " exec " + script)});
  ASSERT_TRUE(RunUntilOut("ready\nready\nready\n"));
  group_->Stop({.first_signal = SIGUSR1, .grace = kNever});
  ASSERT_TRUE(RunUntilDone());
  ASSERT_TRUE(RunUntilOut("one USR1\none TERM\none TERM\n"));
  EXPECT_TRUE(out_.text().ends_with("ready\none USR1\none TERM\none TERM\n")) << out_.text();
  EXPECT_FALSE(warnings_.empty()) << "what was left behind is named";
}

// A script that prints the signals it gets, and exits once a file exists.
std::string Hears(const std::string& file) {
  const std::string wait = file.empty() ? "" : "while [ ! -e " + file + " ]; do sleep 0.01; done; ";
  return "#!/bin/sh\nfor s in TERM INT; do trap \"echo $1 heard $s; " + wait +
         "echo $1 ends; exit\" $s; done\necho ready\nwhile :; do sleep 0.01; done\n";
}

// "My helper was stopped with the rank, and the rank failed": it gets its signal after the rank's
// exit.
TEST_F(ProcessTreeTest, LeftoversAreNamedGetSigtermAndHaveTheWholeGrace) {
  const std::string helper = dir_.Write("helper", Hears(dir_.Path("go")), 0755);
  WorkerSpec spec = Sh(3, "");
  spec.argv = {"python3", "-c",
               "import signal, subprocess, sys\n"
               "signal.signal(signal.SIGINT, lambda *_: sys.exit(0))\n"
               "subprocess.Popen(['" +
                   helper + "', 'helper'])\nwhile True: signal.pause()\n"};
  Start({spec});
  ASSERT_TRUE(RunUntilOut("ready"));
  group_->Stop({.first_signal = SIGINT, .grace = kNever});
  ASSERT_TRUE(RunUntilOut("heard TERM"));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_TRUE(warnings_[0].starts_with(
      "stopping processes that workers left behind (SIGTERM, SIGKILL in 3600 s): "))
      << warnings_[0];
  EXPECT_TRUE(warnings_[0].ends_with(" of rank 3")) << warnings_[0];
  dir_.Write("go", "");
  ASSERT_TRUE(RunUntilDone());
  EXPECT_TRUE(RunUntilOut("ready\nhelper heard TERM\nhelper ends\n"));
  EXPECT_EQ(warnings_.size(), 1u);
}

// `proxy & python train.py`: the shell exits at once, but its python needs the proxy to save.
TEST_F(ProcessTreeTest, HelpersOfAScriptWaitForItsProgram) {
  const std::string helper = dir_.Write("helper", Hears(""), 0755);
  const std::string program = dir_.Write("program", Hears(dir_.Path("go")), 0755);
  Start({Sh(0, helper + " helper & " + program + " program; :")});
  ASSERT_TRUE(RunUntilOut("ready\nready"));
  group_->Stop({.grace = kNever});
  ASSERT_TRUE(RunUntilOut("program heard TERM"));
  ASSERT_TRUE(test::RunUntil(io_, [&] { return group_->running() == 0; }));
  // Longer than until leftovers are looked for.
  EXPECT_FALSE(test::RunUntil(
      io_, [&] { return out_.text().find("helper") != std::string::npos; }, milliseconds(700)));
  dir_.Write("go", "");
  ASSERT_TRUE(RunUntilDone());
  EXPECT_TRUE(RunUntilOut("program ends\nhelper heard TERM\nhelper ends\n"));
}

// A rank that saves may wait for another rank's program, whose wrapper has died of the signal.
TEST_F(ProcessTreeTest, LeftoversOfOneWorkerDoNotWaitForAnother) {
  const std::string program = dir_.Write("program", Hears(dir_.Path("go")), 0755);
  const std::string fail = dir_.Path("fail");
  Start({Sh(0, program + " program"),
         Sh(1, "sh -c 'trap \"touch " + dir_.Path("go") +
                   "; exit\" TERM; echo ready; while :; do sleep 0.01; done' & "
                   "while [ ! -e " +
                   fail + " ]; do sleep 0.01; done; exit 3")},
        {.grace = kNever});
  ASSERT_TRUE(RunUntilOut("ready\nready"));
  dir_.Write("fail", "");
  ASSERT_TRUE(RunUntilDone());
  EXPECT_TRUE(RunUntilOut("program ends"));
}

TEST_F(ProcessTreeTest, DaemonThatIgnoresTheSignalIsKilledAfterTheGraceAndNamed) {
  Start({Sh(
      0, Daemon("trap : TERM; echo ready; while :; do sleep 10000; done") + "exec sleep 10000")});
  ASSERT_TRUE(RunUntilOut("ready"));
  ASSERT_TRUE(RunUntilProcesses(3));
  group_->Stop({.grace = kShort});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(CountProcesses(), 0u);
  EXPECT_TRUE(
      warnings_.back().starts_with("killing processes that workers left behind, as they did not "
                                   "exit within the grace period: sh (pid "))
      << warnings_.back();
}

// "After a successful run my data server still held its port, and the next round could not bind."
TEST_F(ProcessTreeTest, WhatSuccessfulWorkersLeaveBehindIsAskedToEndAndWaitedFor) {
  Start(
      {Sh(0, Daemon("trap \\\"echo bye; exit\\\" TERM; echo ready; while :; do sleep 0.01; done") +
                 "while [ ! -e " + dir_.Path("go") + " ]; do sleep 0.01; done")},
      {.grace = kNever});
  ASSERT_TRUE(RunUntilOut("ready"));
  dir_.Write("go", "");
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
  EXPECT_FALSE(results_[0].exits[0].stopped_by_group);
  EXPECT_TRUE(RunUntilOut("bye"));
  EXPECT_EQ(CountProcesses(), 0u);
}

// "My rank's last act was to start the upload of its checkpoint; the upload was killed silently."
TEST_F(ProcessTreeTest, UploadThatASuccessfulWorkerHasStartedIsWaitedFor) {
  leftovers_ = LeftoverPolicy::kWait;
  Start({Sh(0, "sh -c 'while [ ! -e " + dir_.Path("go") +
                   " ]; do sleep 0.01; done; echo uploaded' & exit 0")},
        {.grace = kNever});
  ASSERT_TRUE(test::RunUntil(io_, [&] { return !warnings_.empty(); }));
  EXPECT_TRUE(warnings_[0].starts_with(
      "all workers have ended; waiting up to 3600 s for what they left running: sh (pid "))
      << warnings_[0];
  EXPECT_TRUE(results_.empty());
  dir_.Write("go", "");
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
  EXPECT_TRUE(RunUntilOut("uploaded"));
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(ProcessTreeTest, UploadThatTakesTooLongIsNamedAndStoppedAndNoFailure) {
  leftovers_ = LeftoverPolicy::kWait;
  Start({Sh(0,
            "sh -c 'trap \"echo cut off; exit\" TERM; echo ready; while :; do sleep 0.01; done' & "
            "while [ ! -e " +
                dir_.Path("go") + " ]; do sleep 0.01; done")},
        {.grace = std::chrono::seconds(2)});
  ASSERT_TRUE(RunUntilOut("ready"));
  dir_.Write("go", "");
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
  EXPECT_TRUE(RunUntilOut("cut off"));
  EXPECT_TRUE(warnings_.back().starts_with("stopping processes that workers left behind (SIGTERM"))
      << warnings_.back();
}

TEST_F(ProcessTreeTest, StopWhileAnUploadIsWaitedForStopsIt) {
  leftovers_ = LeftoverPolicy::kWait;
  Start({Sh(0,
            "sh -c 'trap \"echo cut off; exit\" TERM; echo ready; while :; do sleep 0.01; done' & "
            "while [ ! -e " +
                dir_.Path("go") + " ]; do sleep 0.01; done")},
        {.grace = kNever});
  ASSERT_TRUE(RunUntilOut("ready"));
  dir_.Write("go", "");
  ASSERT_TRUE(test::RunUntil(io_, [&] { return group_->running() == 0; }));
  group_->Stop({.first_signal = SIGINT, .grace = kNever});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded) << "all workers had succeeded";
  EXPECT_TRUE(RunUntilOut("cut off"));
}

TEST_F(ProcessTreeTest, WhatIsKeptIsNamedAndOutlivesTheGroup) {
  for (const bool use_cgroup : {false, true}) {
    use_cgroup_ = use_cgroup;
    leftovers_ = LeftoverPolicy::kKeep;
    results_.clear();
    warnings_.clear();
    std::filesystem::remove(dir_.Path("pid"));
    // It has its program's name after its exec.
    Start(
        {Sh(0, "sleep 10000 & while [ \"$(cat /proc/$!/comm)\" != sleep ]; do :; done; echo $! > " +
                   dir_.Path("pid") + "; exit 0")});
    const pid_t kept = PidFrom("pid");
    ASSERT_TRUE(RunUntilDone());
    EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
    EXPECT_EQ(warnings_,
              std::vector<std::string>{absl::StrCat(
                  "leaving behind what workers left running: sleep (pid ", kept, ") of rank 0")});
    group_.reset();
    EXPECT_TRUE(IsAlive(kept));
    const std::string place = ReadAll(absl::StrCat("/proc/", kept, "/cgroup"));
    EXPECT_EQ(place.find("/muster-"), std::string::npos) << place;
    ::kill(kept, SIGKILL);
    ::waitpid(kept, nullptr, 0);
  }
}

// What a failed worker left behind may be the cause of the failure.
TEST_F(ProcessTreeTest, NothingIsKeptAfterAFailure) {
  leftovers_ = LeftoverPolicy::kKeep;
  ASSERT_TRUE(RunToEnd({Sh(0, "sleep 10000 & exit 3")}));
  EXPECT_EQ(CountProcesses(), 0u);
}

TEST_F(ProcessTreeTest, WhatIsLeftBehindMayStayWhileOtherWorkersRun) {
  Start({Sh(0, "setsid sleep 10000 & exit 0"),
         Sh(1, "trap 'exit 0' USR1; echo ready; while :; do sleep 0.01; done")});
  ASSERT_TRUE(RunUntilOut("ready"));
  ASSERT_TRUE(test::RunUntil(io_, [&] { return group_->running() == 1; }));
  // A process in the middle of an exec is not found.
  ASSERT_TRUE(test::RunUntil(io_, [&] { return CountProcesses() >= 2; }));
  group_->ForwardSignal(SIGUSR1);
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kSucceeded);
  EXPECT_EQ(CountProcesses(), 0u);
}

TEST_F(ProcessTreeTest, ChildrenInAFailedWorkersGroupGetTheirGraceToo) {
  Start({Sh(0,
            "sh -c 'trap \"echo saved; exit\" TERM; echo ready; while :; do sleep 0.01; done' &"
            "while [ ! -e " +
                dir_.Path("go") + " ]; do sleep 0.01; done; exit 3")},
        {.grace = kNever});
  ASSERT_TRUE(RunUntilOut("ready"));
  dir_.Write("go", "");
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(failures_.at(0).status.exit_code, 3);
  EXPECT_TRUE(RunUntilOut("saved"));
}

// "Ctrl-C takes half a minute": shells make their background jobs ignore SIGINT.
TEST_F(ProcessTreeTest, BackgroundJobThatIgnoresTheFirstSignalIsTerminatedAfterItsWorker) {
  Start({Sh(0,
            "sh -c 'trap \"echo bye; exit\" TERM; echo ready; while :; do sleep 0.01; done' & "
            "trap 'exit 0' INT; echo ready; while :; do sleep 0.01; done")});
  ASSERT_TRUE(RunUntilOut("ready\nready"));
  group_->Stop({.first_signal = SIGINT, .grace = kNever});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status, ExitStatus{});
  EXPECT_TRUE(RunUntilOut("bye"));
}

// "Ctrl-C at the wrong moment takes half a minute": a fresh fork still has its parent's handlers,
// which swallow a signal.
TEST_F(ProcessTreeTest, ProcessThatHasLostTheFirstSignalIsReminded) {
  // A child that loses the signal before its exec, and reports it.
  const std::string lose =
      "import os, signal, time\n"
      "parent, signals = os.getpid(), []\n"
      "def caught(*_):\n"
      "  if os.getpid() == parent: os._exit(0)\n"
      "  signals.append(1)\n"
      "signal.signal(signal.SIGTERM, caught)\n"
      "if os.fork() == 0:\n"
      "  os.setsid(); print('ready', flush=True)\n"
      "  while not signals: time.sleep(0.01)\n"
      "  time.sleep(0.5)  # later than the first time that it is looked at\n"
      "  signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
      "  os.execvp('sleep', ['sleep', '10000'])\n"
      "while True: time.sleep(1)\n";
  WorkerSpec spec = Sh(0, "");
  spec.argv = {"python3", "-c", lose};
  Start({spec});
  ASSERT_TRUE(RunUntilOut("ready"));
  group_->Stop({.grace = kNever});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status, ExitStatus{});
}

TEST_F(ProcessTreeTest, WhatASaverHasStartedToSaveIsLeftInPeace) {
  const std::string fifo = dir_.Path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Start({Sh(0, "sh -c 'trap \"echo saving; cat " + fifo +
                   " && exit\" TERM; echo ready; "
                   "while :; do sleep 0.01; done'; :")});
  ASSERT_TRUE(RunUntilOut("ready"));
  group_->Stop({.grace = kNever});
  ASSERT_TRUE(RunUntilOut("saving"));
  ASSERT_TRUE(test::RunUntil(io_, [&] { return group_->running() == 0; }));
  ASSERT_TRUE(RunUntilProcesses(2)) << "the saver and its cat";
  // Longer than until the reminder.
  EXPECT_FALSE(test::RunUntil(
      io_, [&] { return CountProcesses() < 2; }, milliseconds(400)));
  std::ofstream(fifo) << "saved\n";
  ASSERT_TRUE(RunUntilDone());
  EXPECT_TRUE(RunUntilOut("saved"));
}

TEST_F(ProcessTreeTest, SecondInterruptKillsDaemonsAtOnce) {
  Start({Sh(
      0, Daemon("trap : TERM; echo ready; while :; do sleep 10000; done") + "exec sleep 10000")});
  ASSERT_TRUE(RunUntilOut("ready"));
  group_->Stop({.grace = kNever});
  group_->Stop(StopLadder::Now());
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(CountProcesses(), 0u);
}

TEST_F(ProcessTreeTest, DestructionKillsDaemons) {
  Start({Sh(
      0, Daemon("trap : TERM; echo ready; while :; do sleep 10000; done") + "exec sleep 10000")});
  ASSERT_TRUE(RunUntilOut("ready"));
  group_.reset();
  EXPECT_EQ(CountProcesses(), 0u);
  EXPECT_EQ(OwnZombies(), 0u);
}

TEST_F(ProcessTreeTest, AdoptedOrphansThatEndAreWaitedForWhileWorkersRun) {
  Start(
      {Sh(0, "for i in 1 2 3 4 5; do " + Daemon("true") + " done; echo ready; exec sleep 10000")});
  ASSERT_TRUE(RunUntilOut("ready"));
  EXPECT_TRUE(test::RunUntil(io_, [&] { return CountProcesses() == 1 && OwnZombies() == 0; }));
}

TEST_F(ProcessTreeTest, ChildOfSomebodyElseInTheProgramIsLeftToThem) {
  // One child as popen() makes it, and one that leads a session but existed before.
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setsid();
    for (;;) ::pause();
  }
  ASSERT_TRUE(test::WaitUntil([&] { return ::getsid(daemon) == daemon; }));
  Start({Sh(0, Daemon("true") + "echo ready; exec sleep 10000")});
  const pid_t child = ::fork();
  if (child == 0) ::_exit(7);
  ASSERT_TRUE(RunUntilOut("ready"));
  ASSERT_TRUE(test::RunUntil(io_, [&] { return CountProcesses() == 1 && OwnZombies() == 1; }));
  group_->Stop({.grace = kNever});
  ASSERT_TRUE(RunUntilDone());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_TRUE(IsAlive(daemon)) << "no signal is for it, and nobody waits for its end";
  ::kill(daemon, SIGKILL);
  EXPECT_EQ(::waitpid(daemon, &status, 0), daemon);
}

TEST_F(ProcessTreeTest, TheProgramAdoptsOrphansOnlyWhileWorkersRun) {
  ASSERT_FALSE(IsSubreaper());
  Start({Sleeper(0)});
  EXPECT_TRUE(IsSubreaper());
  group_->Stop(StopLadder::Now());
  ASSERT_TRUE(RunUntilDone());
  EXPECT_FALSE(IsSubreaper());
}

TEST_F(ProcessTreeTest, WithAControlGroupNothingOutrunsSigkill) {
  use_cgroup_ = true;
  // Each process starts the next in a session of its own and exits: a search always finds it gone.
  const std::string chain =
      dir_.Write("chain", "#!/bin/sh\ntrap '' TERM\nsetsid \"$0\" &\nexit 0\n", 0755);
  Start({Sh(0, chain + "; exec sleep 10000")});
  const std::string place = ReadSmallFile("/proc/" + std::to_string(group_->pids()[0]) + "/cgroup");
  const auto cgroup = FindCgroup("", place, ReadSmallFile("/proc/self/mountinfo"));
  if (place.find("/muster-") == std::string::npos) {
    group_->Stop(StopLadder::Now());
    ASSERT_TRUE(RunUntilDone());
    GTEST_SKIP() << "no writable cgroup v2 with cgroup.kill here";
  }
  group_->Stop({.grace = kShort});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGTERM);
  EXPECT_EQ(CountProcesses(), 0u);
  EXPECT_FALSE(std::filesystem::exists(cgroup->directory));
}

// A process in a freezer (v1) survives SIGKILL, like one that hangs in the kernel.
class FrozenTreeTest : public ProcessTreeTest {
 protected:
  FrozenTreeTest() : freezer_(FindOwnCgroup("freezer")) {
    if (!freezer_.has_value()) return;
    group_dir_ = freezer_->directory + "/muster-test-" + std::to_string(::getpid());
    ready_ = ::mkdir(group_dir_.c_str(), 0755) == 0;
  }
  ~FrozenTreeTest() override { Thaw(); }

  bool Freeze(pid_t pid) {
    return Write("cgroup.procs", std::to_string(pid)) && Write("freezer.state", "FROZEN") &&
           test::WaitUntil([&] { return ReadAll(group_dir_ + "/freezer.state") == "FROZEN\n"; });
  }
  void Thaw() {
    if (!ready_) return;
    Write("freezer.state", "THAWED");
    EXPECT_TRUE(test::WaitForProcesses(mark_, 0));
    EXPECT_TRUE(test::WaitUntil([&] { return ::rmdir(group_dir_.c_str()) == 0; }));
    ready_ = false;
  }
  bool Write(const std::string& name, const std::string& text) {
    std::ofstream file(group_dir_ + "/" + name);
    return static_cast<bool>(file << text << std::flush);
  }

  const std::optional<CgroupPath> freezer_;
  std::string group_dir_;
  bool ready_ = false;
};

TEST_F(FrozenTreeTest, WhatCannotBeEndedIsGivenUpAndNamed) {
  if (!ready_) GTEST_SKIP() << "no freezer (cgroup v1) of our own here";
  const std::string pid_file = dir_.Path("pid");
  Start({Sh(0, Daemon("echo \\$\\$ > " + pid_file + "; exec sleep 10000") + " exec sleep 10000")});
  const pid_t daemon = PidFrom("pid");
  ASSERT_TRUE(Freeze(daemon));
  group_->Stop({.grace = kShort, .give_up = kShort});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGTERM);
  ASSERT_GE(warnings_.size(), 2u);
  const std::string& killing = warnings_[warnings_.size() - 2];
  EXPECT_NE(killing.find("grace period: sleep (pid " + std::to_string(daemon) + ")"),
            std::string::npos)
      << killing;
  EXPECT_TRUE(warnings_.back().starts_with(
      "sleep (pid " + std::to_string(daemon) +
      "), which a worker had started, did not end 50 ms after SIGKILL and is left behind; it is in "
      "state D (uninterruptible sleep)"))
      << warnings_.back();
  Thaw();
  ::waitpid(daemon, nullptr, 0);
}

TEST_F(FrozenTreeTest, AWorkerThatCannotBeEndedIsNamedAndHoldsNobodyUp) {
  if (!ready_) GTEST_SKIP() << "no freezer (cgroup v1) of our own here";
  Start({Sleeper(0), Sleeper(1)}, {.grace = kShort, .give_up = kShort});
  const pid_t frozen = group_->pids()[1];
  ASSERT_TRUE(Freeze(frozen));
  ::kill(group_->pids()[0], SIGKILL);
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kFailed);
  ASSERT_EQ(results_[0].exits.size(), 2u);
  EXPECT_EQ(results_[0].exits[0].stuck, "");
  EXPECT_FALSE(results_[0].exits[1].status.has_value());
  const std::string& stuck = results_[0].exits[1].stuck;
  EXPECT_TRUE(stuck.starts_with("is in state D (uninterruptible sleep)")) << stuck;
  EXPECT_EQ(warnings_, std::vector<std::string>{
                           "rank 1: process " + std::to_string(frozen) +
                           " did not end 50 ms after SIGKILL and is left behind; it " + stuck});
  Thaw();
  ::waitpid(frozen, nullptr, 0);
}

}  // namespace
}  // namespace muster::worker
