// The workers' guard is killed, but not the agent: another guard takes over.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/process_scan.h"
#include "test/support/run_until.h"
#include "test/worker/group_fixture.h"

namespace muster::worker {
namespace {

constexpr char kDied[] =
    "the guard that ends leftover processes if this agent is killed has died; ";

class GuardDeathTest : public GroupTest {
 protected:
  // Our children that are not workers, including zombies.
  std::vector<pid_t> Guards() const {
    std::vector<pid_t> guards = test::ChildrenOf(::getpid());
    for (const pid_t worker : group_->pids()) std::erase(guards, worker);
    return guards;
  }

  // Returns when the group has reported it.
  void KillGuard() {
    const std::vector<pid_t> guards = Guards();
    ASSERT_EQ(guards.size(), 1u);
    const std::size_t told = warnings_.size();
    ASSERT_EQ(::kill(guards[0], SIGKILL), 0);
    ASSERT_TRUE(test::RunUntil(io_, [&] { return warnings_.size() > told; }));
    EXPECT_FALSE(IsAlive(guards[0]));
  }

  void StopAll() {
    group_->Stop({.grace = std::chrono::hours(1)});
    ASSERT_TRUE(RunUntilDone());
    EXPECT_EQ(results_[0].end, GroupEnd::kStopped);
    EXPECT_TRUE(test::ChildrenOf(::getpid()).empty());
  }
};

TEST_F(GuardDeathTest, AnotherIsStartedAndTheUserIsTold) {
  Start({Sleeper(0)});
  const std::vector<pid_t> before = Guards();
  KillGuard();
  EXPECT_EQ(warnings_, std::vector<std::string>{std::string(kDied) + "another has been started"});
  ASSERT_EQ(Guards().size(), 1u) << "the dead one was waited for";
  EXPECT_NE(Guards(), before);
  StopAll();
}

TEST_F(GuardDeathTest, TheNextOneKeepsTheDeadline) {
  Start({Sleeper(0)});
  KillGuard();
  group_->SetDeadline(std::chrono::steady_clock::now());
  ASSERT_TRUE(RunUntilDone());
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_TRUE(failures_[0].lost_touch);
}

TEST_F(GuardDeathTest, OneThatDiesAgainAndAgainIsGivenUp) {
  Start({Sleeper(0)});
  for (int death = 1; death <= 10; ++death) KillGuard();
  EXPECT_EQ(warnings_.back(), std::string(kDied) +
                                  "processes started by workers would outlive a killed agent: "
                                  "it has died 10 times");
  EXPECT_TRUE(Guards().empty());
  StopAll();
}

}  // namespace
}  // namespace muster::worker
