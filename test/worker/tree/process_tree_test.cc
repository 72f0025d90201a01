// Processes started by workers end with them, even in their own sessions or with other parents.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

#include "test/worker/group_fixture.h"
#include "worker/process/process_info.h"
#include "worker/tree/cgroup.h"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;

// Long enough that a test that waits for it fails by its deadline.
constexpr milliseconds kNever = std::chrono::hours(1);
constexpr milliseconds kShort(50);

class ProcessTreeTest : public GroupTest {
 protected:
  ProcessTreeTest() {
    out_.Read();
    err_.Read();
  }

  // A shell command that starts `script` as a daemon is started: its parents are gone and it has a
  // session of its own.
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

// "My checkpoint was cut off: the shell around my python ended at SIGTERM, and python was killed."
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

TEST_F(ProcessTreeTest, ProcessesInOtherSessionsGetTheFirstSignalOnce) {
  const std::string report = "trap 'echo one; kill $!; exit' USR1; echo ready; sleep 10000 & wait";
  const std::string script = dir_.Write("report", "#!/bin/sh\n" + report + "\n", 0755);
  Start({Sh(0, "setsid " + script + " & " + Daemon(script) + " exec " + script)});
  ASSERT_TRUE(RunUntilOut("ready\nready\nready\n"));
  group_->Stop({.first_signal = SIGUSR1, .grace = kNever});
  ASSERT_TRUE(RunUntilDone());
  ASSERT_TRUE(RunUntilOut("one\none\none\n"));
  EXPECT_EQ(out_.text().find("one\none\none\none\n"), std::string::npos);
}

TEST_F(ProcessTreeTest, DaemonThatIgnoresTheSignalIsKilledAfterTheGraceAndNamed) {
  Start({Sh(
      0, Daemon("trap : TERM; echo ready; while :; do sleep 10000; done") + "exec sleep 10000")});
  ASSERT_TRUE(RunUntilOut("ready"));
  ASSERT_TRUE(RunUntilProcesses(3));
  group_->Stop({.grace = kShort});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(CountProcesses(), 0u);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_TRUE(warnings_[0].starts_with(
      "killing what workers left behind, as it did not end in the grace time: sh (pid "))
      << warnings_[0];
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
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(ProcessTreeTest, WhatIsLeftBehindMayStayWhileOtherWorkersRun) {
  Start({Sh(0, "setsid sleep 10000 & exit 0"),
         Sh(1, "trap 'exit 0' USR1; echo ready; while :; do sleep 0.01; done")});
  ASSERT_TRUE(RunUntilOut("ready"));
  ASSERT_TRUE(test::RunUntil(io_, [&] { return group_->running() == 1; }));
  EXPECT_GE(CountProcesses(), 2u);
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

// "Ctrl-C takes half a minute": shells have their background jobs ignore SIGINT.
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

// "Ctrl-C at the wrong moment takes half a minute": what has just been forked has its parent's
// handlers still, and a signal that comes to these is lost.
TEST_F(ProcessTreeTest, ProcessThatHasLostTheFirstSignalIsReminded) {
  // A child that loses the signal before it calls exec, and says so.
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
  group_->StopNow();
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
  // One as popen() makes it, and one that leads a session but was there before.
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
  group_->StopNow();
  ASSERT_TRUE(RunUntilDone());
  EXPECT_FALSE(IsSubreaper());
}

TEST_F(ProcessTreeTest, WithAControlGroupNothingOutrunsSigkill) {
  use_cgroup_ = true;
  // Each of these starts the next in a session of its own and ends: whoever looks finds it gone.
  const std::string chain =
      dir_.Write("chain", "#!/bin/sh\ntrap '' TERM\nsetsid \"$0\" &\nexit 0\n", 0755);
  Start({Sh(0, chain + "; exec sleep 10000")});
  const std::string place = ReadSmallFile("/proc/" + std::to_string(group_->pids()[0]) + "/cgroup");
  const auto cgroup = FindCgroup("", place, ReadSmallFile("/proc/self/mountinfo"));
  if (place.find("/muster-") == std::string::npos) {
    group_->StopNow();
    ASSERT_TRUE(RunUntilDone());
    GTEST_SKIP() << "no writable cgroup v2 with cgroup.kill here";
  }
  group_->Stop({.grace = kShort});
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].exits[0].status->signal, SIGTERM);
  EXPECT_EQ(CountProcesses(), 0u);
  EXPECT_FALSE(std::filesystem::exists(cgroup->directory));
}

// What a freezer (v1) holds does not end at SIGKILL, as what hangs in the kernel does not.
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
  ASSERT_EQ(warnings_.size(), 2u);
  EXPECT_TRUE(warnings_[0].ends_with("grace time: sleep (pid " + std::to_string(daemon) + ")"))
      << warnings_[0];
  EXPECT_TRUE(warnings_[1].starts_with(
      "sleep (pid " + std::to_string(daemon) +
      "), which a worker had started, did not end 50 ms after SIGKILL and is left behind; it is in "
      "state D (uninterruptible sleep)"))
      << warnings_[1];
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
