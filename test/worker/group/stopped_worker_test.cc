// Workers that are stopped (SIGSTOP) and continued, and how their group notices.
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "test/worker/group_fixture.h"

namespace muster::worker {
namespace {

class StoppedWorkerTest : public ReadGroupTest {
 protected:
  void StartWatched(std::vector<WorkerSpec> specs) {
    WorkerGroupCallbacks callbacks;
    callbacks.on_started = [this] { news_.push_back("all started"); };
    callbacks.on_stopped = [this](int rank, pid_t pid, const std::string& what) {
      EXPECT_EQ(pid, group_->pids()[static_cast<std::size_t>(rank)]);
      news_.push_back("rank " + std::to_string(rank) + " " + what);
    };
    callbacks.on_continued = [this](int rank, pid_t pid) {
      EXPECT_EQ(pid, group_->pids()[static_cast<std::size_t>(rank)]);
      news_.push_back("rank " + std::to_string(rank) + " goes on");
    };
    callbacks.on_done = [this](const GroupResult& result) { results_.push_back(result); };
    group_ = std::make_unique<WorkerGroup>(io_, WorkerGroupOptions{.use_cgroup = false}, console_,
                                           std::move(callbacks));
    group_->Start(std::move(specs));
  }
  bool RunUntilNews(std::size_t count) {
    return test::RunUntil(io_, [&] { return news_.size() >= count; });
  }

  std::vector<std::string> news_;
};

using News = std::vector<std::string>;

TEST_F(StoppedWorkerTest, IsToldWithItsSignalAndWhenItGoesOn) {
  StartWatched({Sleeper(0), Sleeper(1)});
  ASSERT_TRUE(RunUntilNews(1));
  ::kill(group_->pids()[1], SIGSTOP);
  ASSERT_TRUE(RunUntilNews(2));
  ::kill(group_->pids()[1], SIGCONT);
  ASSERT_TRUE(RunUntilNews(3));
  ::kill(group_->pids()[0], SIGSTOP);
  ASSERT_TRUE(RunUntilNews(4));
  EXPECT_EQ(news_, (News{"all started", "rank 1 was stopped by SIGSTOP", "rank 1 goes on",
                         "rank 0 was stopped by SIGSTOP"}));
  EXPECT_EQ(group_->running(), 2) << "to be stopped is no end";
}

TEST_F(StoppedWorkerTest, OneThatIsKilledWhileItIsStoppedHasFailed) {
  StartWatched({Sleeper(0)});
  ASSERT_TRUE(RunUntilNews(1));
  ::kill(group_->pids()[0], SIGSTOP);
  ASSERT_TRUE(RunUntilNews(2));
  ::kill(group_->pids()[0], SIGKILL);
  ASSERT_TRUE(RunUntilDone());
  ASSERT_EQ(results_[0].end, GroupEnd::kFailed);
  EXPECT_EQ(results_[0].failure->what, "was killed by SIGKILL");
  EXPECT_EQ(news_.size(), 2u);
}

TEST_F(StoppedWorkerTest, AGroupAfterAnotherHearsOfItToo) {
  for (int round = 0; round < 2; ++round) {
    news_.clear();
    results_.clear();
    StartWatched({Sleeper(0)});
    ASSERT_TRUE(RunUntilNews(1));
    ::kill(group_->pids()[0], SIGSTOP);
    ASSERT_TRUE(RunUntilNews(2)) << "round " << round;
    group_->Stop(StopLadder::Now());
    ASSERT_TRUE(RunUntilDone());
  }
}

TEST_F(StoppedWorkerTest, AStoppedWorkerIsHeardOfWhileOthersEnd) {
  StartWatched(
      {Sleeper(0), Sh(1, "kill -STOP " + std::string("$$; echo went on")), Sh(2, "exit 0")});
  ASSERT_TRUE(RunUntilNews(2));
  EXPECT_EQ(news_[1], "rank 1 was stopped by SIGSTOP");
  ASSERT_TRUE(test::RunUntil(io_, [&] { return group_->running() == 2; }));
  ::kill(group_->pids()[1], SIGCONT);
  ASSERT_TRUE(RunUntilOut("went on"));
}

TEST_F(StoppedWorkerTest, ADebuggerThatHoldsAWorkerIsNoStop) {
  StartWatched({Sleeper(0), Sleeper(1)});
  ASSERT_TRUE(RunUntilNews(1));
  const pid_t held = group_->pids()[0];
  const pid_t debugger = ::fork();
  if (debugger == 0) {
    if (::ptrace(PTRACE_ATTACH, held, nullptr, nullptr) != 0) ::_exit(1);
    // The group reports "started" while the kernel still finishes the exec, of which a debugger is
    // notified by SIGTRAP. A debugger that detaches then leaves its SIGSTOP pending, which stops
    // the worker.
    int stop = 0;
    while (::waitpid(held, &stop, __WALL) == held && WIFSTOPPED(stop) &&
           WSTOPSIG(stop) != SIGSTOP) {
      ::ptrace(PTRACE_CONT, held, nullptr, nullptr);
    }
    if (!WIFSTOPPED(stop)) ::_exit(2);
    ::_exit(::ptrace(PTRACE_DETACH, held, nullptr, nullptr) == 0 ? 0 : 3);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(debugger, &status, 0), debugger);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 1) GTEST_SKIP() << "ptrace is not allowed here";
  ASSERT_EQ(status, 0);
  // When this one is reported, the other would have been, too.
  ::kill(group_->pids()[1], SIGSTOP);
  ASSERT_TRUE(RunUntilNews(2));
  io_.poll();
  EXPECT_EQ(news_, (News{"all started", "rank 1 was stopped by SIGSTOP"}));
}

// A group that is told to stop continues its workers, so that they can react.
TEST_F(StoppedWorkerTest, StoppedWorkersAnswerARequestToEnd) {
  StartWatched({Sh(0, "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done")});
  ASSERT_TRUE(RunUntilOut("ready"));
  ::kill(group_->pids()[0], SIGSTOP);
  ASSERT_TRUE(RunUntilNews(2));
  group_->Stop({});
  ASSERT_TRUE(RunUntilDone());
  ASSERT_TRUE(RunUntilOut("bye"));
}

}  // namespace
}  // namespace muster::worker
