// An agent that is stopped (SIGSTOP) cannot extend its workers' deadline. Once it has passed, the
// workers and all their descendants are dead, so that the rendezvous may give their ranks away.
// Each test runs with a control group for the workers, if the machine permits one, and without.
#include <fcntl.h>
#include <sys/wait.h>

#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "test/support/process_scan.h"
#include "test/support/run_until.h"
#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"
#include "test/worker/group_fixture.h"
#include "worker/process/spawn.h"

namespace muster::worker {
namespace {

using std::chrono::steady_clock;
using test::ProcessesWith;
using test::WaitForProcesses;
using test::WaitUntil;

constexpr char kKilled[] = "was killed by SIGKILL as its node had lost touch with the rendezvous";

class LostTouchTest : public testing::TestWithParam<const char*> {
 protected:
  ~LostTouchTest() override {
    if (agent_ > 0) KillAgent();
    // Left behind by a failed test.
    for (const pid_t pid : ProcessesWith(mark_)) ::kill(pid, SIGKILL);
  }

  // An agent whose worker runs `script`, which makes `count` processes.
  void StartAgent(const std::string& script, std::size_t count, const std::string& lease_ms) {
    SpawnRequest request;
    request.argv = {"test/worker/tree/agent_helper", GetParam(), mark_, script, lease_ms};
    request.env = {"PATH=/usr/local/bin:/usr/bin:/bin"};
    const base::UniqueFd out(::open(dir_.Write("out", "").c_str(), O_WRONLY | O_CLOEXEC));
    request.stdout_fd = out.get();
    const auto agent = Spawn(request);
    ASSERT_TRUE(agent.ok()) << agent.status();
    agent_ = agent->pid;
    ASSERT_TRUE(WaitForProcesses(mark_, count));
  }

  void StopAgent() {
    ASSERT_EQ(::kill(agent_, SIGSTOP), 0);
    ASSERT_EQ(::waitpid(agent_, nullptr, WUNTRACED), agent_);
  }

  // Waits until it has reported how its worker failed, and exited.
  std::string WhatTheAgentSays() {
    int status = 0;
    EXPECT_TRUE(WaitUntil([&] { return ::waitpid(agent_, &status, WNOHANG) == agent_; }));
    EXPECT_TRUE(WIFEXITED(status)) << status;
    agent_ = 0;
    return test::ReadAll(dir_.Path("out"));
  }

  void KillAgent() {
    ::kill(agent_, SIGKILL);
    ::waitpid(agent_, nullptr, 0);
    agent_ = 0;
  }

  const std::string mark_ = test::UniqueMark();
  test::TempDir dir_;
  pid_t agent_ = 0;
};

// "We stopped an agent for a minute; meanwhile the others trained on with its rank given away, and
// its own workers wrote a checkpoint over theirs."
TEST_P(LostTouchTest, WorkersOfAnAgentThatWasStoppedDieAndItSeesThatWhenItWakes) {
  StartAgent("sleep 10000 & wait", 2, "1000");
  StopAgent();
  ASSERT_TRUE(WaitForProcesses(mark_, 0));
  ::kill(agent_, SIGCONT);
  EXPECT_EQ(WhatTheAgentSays(), std::string(kKilled) + "\n");
}

TEST_P(LostTouchTest, SoDoesWhatTheyHaveStartedInSessionsOfItsOwn) {
  StartAgent(
      "setsid sh -c 'setsid sh -c \"trap : TERM HUP; sleep 10000 & sleep 10000 & wait\" &';"
      "setsid sh -c 'trap \"\" TERM; sleep 10000 & wait' & exec sleep 10000",
      6, "1000");
  StopAgent();
  ASSERT_TRUE(WaitForProcesses(mark_, 0));
  // It exists, and is still stopped: only the guard can have done this.
  EXPECT_EQ(::kill(agent_, SIGCONT), 0);
  EXPECT_EQ(WhatTheAgentSays(), std::string(kKilled) + "\n");
}

TEST_P(LostTouchTest, AgentThatIsKilledWhileStoppedLeavesNothingEither) {
  StartAgent("setsid sleep 10000 & wait", 2, "3600000");
  StopAgent();
  KillAgent();
  EXPECT_TRUE(WaitForProcesses(mark_, 0));
}

TEST_P(LostTouchTest, NorDoesOneThatIsKilledLongBeforeTheDeadline) {
  StartAgent("setsid sleep 10000 & wait", 2, "3600000");
  KillAgent();
  EXPECT_TRUE(WaitForProcesses(mark_, 0));
}

INSTANTIATE_TEST_SUITE_P(, LostTouchTest, testing::Values("cgroup", "none"),
                         [](const auto& info) { return std::string(info.param); });

class LostTouchGroupTest : public GroupTest {
 protected:
  // One that has not started yet.
  void MakeGroup() {
    group_ = std::make_unique<WorkerGroup>(
        io_, WorkerGroupOptions{.use_cgroup = false}, console_,
        WorkerGroupCallbacks{
            .on_first_failure =
                [this](const FailureRecord& failure) { failures_.push_back(failure); },
            .on_done = [this](const GroupResult& result) { results_.push_back(result); }});
  }
};

TEST_F(LostTouchGroupTest, FailureSaysSoAndIsMarked) {
  Start({Sleeper(0), Sleeper(1)});
  group_->SetDeadline(steady_clock::now());
  ASSERT_TRUE(RunUntilDone());
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_TRUE(failures_[0].lost_touch);
  EXPECT_EQ(failures_[0].what, kKilled);
}

TEST_F(LostTouchGroupTest, DeadlineThatWasSetBeforeTheStartHolds) {
  MakeGroup();
  group_->SetDeadline(steady_clock::now() + std::chrono::milliseconds(500));
  group_->Start({Sleeper(0)});
  ASSERT_TRUE(RunUntilDone());
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_TRUE(failures_[0].lost_touch);
}

// "We stopped an agent while it was starting its workers. When it continued a minute later it
// started the rest of them, and for a moment they ran beside those that had got its ranks."
TEST_F(LostTouchGroupTest, NobodyIsStartedAfterTheDeadline) {
  MakeGroup();
  group_->SetDeadline(steady_clock::now());
  group_->Start({Sleeper(0), Sleeper(1)});
  EXPECT_TRUE(group_->pids().empty());
  ASSERT_TRUE(RunUntilDone());
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_TRUE(failures_[0].lost_touch);
  EXPECT_EQ(failures_[0].what, "could not be started: its node had lost touch with the rendezvous");
  EXPECT_TRUE(results_[0].exits.empty());
}

TEST_F(LostTouchGroupTest, KillBySomebodyElseBeforeTheDeadlineIsAnOrdinaryFailure) {
  Start({Sh(0, "kill -9 $$")});
  group_->SetDeadline(steady_clock::now() + std::chrono::hours(1));
  ASSERT_TRUE(RunUntilDone());
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_FALSE(failures_[0].lost_touch);
  EXPECT_EQ(failures_[0].what, "was killed by SIGKILL");
}

TEST_F(LostTouchGroupTest, WorkersThatWereStoppedInTimeAreNoFailure) {
  Start({Sleeper(0)});
  group_->SetDeadline(steady_clock::now() + std::chrono::hours(1));
  group_->Stop(StopLadder::Now());
  ASSERT_TRUE(RunUntilDone());
  EXPECT_EQ(results_[0].end, GroupEnd::kStopped);
  EXPECT_TRUE(failures_.empty());
}

}  // namespace
}  // namespace muster::worker
