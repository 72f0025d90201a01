// The guard's deadline, with process groups that are not real workers. agent_death_test and
// lost_touch_test cover an agent that dies or is stopped.
#include "worker/tree/orphan_guard.h"

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"
#include "worker/process/spawn.h"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::IsAlive;
using test::WaitUntil;

constexpr std::chrono::hours kLater(1);

class OrphanGuardTest : public testing::Test {
 protected:
  ~OrphanGuardTest() override {
    for (const pid_t group : groups_) {
      ::kill(-group, SIGKILL);
      ::waitpid(group, nullptr, 0);
    }
  }

  static OrphanGuard StartGuard() {
    auto guard = OrphanGuard::Start({.capacity = 8});
    if (!guard.ok()) std::abort();
    return *std::move(guard);
  }

  // A group of two processes that `guard` watches.
  pid_t WatchedGroup(OrphanGuard& guard) {
    SpawnRequest request;
    request.argv = {"sh", "-c", "sleep 10000 & wait"};
    request.env = {"PATH=/usr/local/bin:/usr/bin:/bin"};
    const auto spawned = Spawn(request);
    if (!spawned.ok()) std::abort();
    groups_.push_back(spawned->pid);
    guard.Watch(spawned->pid);
    return spawned->pid;
  }

  static bool Dies(pid_t pid) {
    return WaitUntil([pid] { return !IsAlive(pid); });
  }

  std::vector<pid_t> groups_;
};

TEST_F(OrphanGuardTest, GroupDiesWhenTheDeadlineComes) {
  OrphanGuard guard = StartGuard();
  const pid_t group = WatchedGroup(guard);
  EXPECT_FALSE(guard.has_struck());
  guard.SetDeadline(steady_clock::now() + milliseconds(50));
  EXPECT_TRUE(Dies(group));
  EXPECT_TRUE(guard.has_struck());
}

// The other guard's deadline is later than the moved one: when its group is dead, the first would
// be, too.
TEST_F(OrphanGuardTest, MovedOrClearedDeadlineSparesTheGroup) {
  OrphanGuard moved = StartGuard();
  OrphanGuard cleared = StartGuard();
  OrphanGuard witness = StartGuard();
  const pid_t spared = WatchedGroup(moved);
  const pid_t spared_too = WatchedGroup(cleared);
  const pid_t dies = WatchedGroup(witness);
  const auto soon = steady_clock::now() + milliseconds(300);
  moved.SetDeadline(soon);
  cleared.SetDeadline(soon);
  witness.SetDeadline(soon + milliseconds(200));
  moved.SetDeadline(steady_clock::now() + kLater);
  cleared.SetDeadline(std::nullopt);
  ASSERT_TRUE(Dies(dies));
  EXPECT_TRUE(IsAlive(spared));
  EXPECT_TRUE(IsAlive(spared_too));
  EXPECT_FALSE(moved.has_struck());
  EXPECT_FALSE(cleared.has_struck());
}

TEST_F(OrphanGuardTest, DeadlineMayBeBroughtForward) {
  OrphanGuard guard = StartGuard();
  const pid_t group = WatchedGroup(guard);
  guard.SetDeadline(steady_clock::now() + kLater);
  guard.SetDeadline(steady_clock::now() + milliseconds(20));
  EXPECT_TRUE(Dies(group));
}

// An agent was stopped while it started its workers, and continues with that when it wakes.
TEST_F(OrphanGuardTest, GroupThatComesAfterTheDeadlineDiesToo) {
  OrphanGuard guard = StartGuard();
  const pid_t first = WatchedGroup(guard);
  guard.SetDeadline(steady_clock::now());
  ASSERT_TRUE(Dies(first));
  EXPECT_TRUE(Dies(WatchedGroup(guard)));
}

TEST_F(OrphanGuardTest, GuardGoesOnAfterItHasStruck) {
  OrphanGuard guard = StartGuard();
  const pid_t first = WatchedGroup(guard);
  guard.SetDeadline(steady_clock::now());
  ASSERT_TRUE(Dies(first));
  guard.Forget(first);
  guard.SetDeadline(steady_clock::now() + kLater);
  const pid_t second = WatchedGroup(guard);
  guard.SetDeadline(steady_clock::now() + milliseconds(20));
  EXPECT_TRUE(Dies(second));
}

TEST_F(OrphanGuardTest, ForgottenGroupIsSpared) {
  OrphanGuard guard = StartGuard();
  const pid_t forgotten = WatchedGroup(guard);
  const pid_t watched = WatchedGroup(guard);
  guard.Forget(forgotten);
  guard.SetDeadline(steady_clock::now());
  ASSERT_TRUE(Dies(watched));
  EXPECT_TRUE(IsAlive(forgotten));
}

// A pipe holds some ten thousand messages. Moves must not fill it and lose what follows.
TEST_F(OrphanGuardTest, MovesDoNotFillThePipeOfAGuardThatWasStopped) {
  OrphanGuard guard = StartGuard();
  ASSERT_EQ(::kill(guard.pid(), SIGSTOP), 0);
  ASSERT_EQ(::waitpid(guard.pid(), nullptr, WUNTRACED), guard.pid());
  const auto later = steady_clock::now() + kLater;
  for (int i = 0; i < 50'000; ++i) {
    guard.SetDeadline(later + milliseconds(i));
    guard.SetDeadline(std::nullopt);
    guard.SetDeadline(later);
  }
  const pid_t group = WatchedGroup(guard);
  guard.SetDeadline(steady_clock::now());
  EXPECT_TRUE(IsAlive(group));
  ::kill(guard.pid(), SIGCONT);
  EXPECT_TRUE(Dies(group));
}

TEST_F(OrphanGuardTest, GuardThatEndsInGoodOrderHarmsNobody) {
  OrphanGuard other = StartGuard();
  const pid_t witness = WatchedGroup(other);
  pid_t spared = 0;
  {
    OrphanGuard guard = StartGuard();
    spared = WatchedGroup(guard);
    const auto soon = steady_clock::now() + milliseconds(100);
    guard.SetDeadline(soon);
    other.SetDeadline(soon + milliseconds(100));
  }
  ASSERT_TRUE(Dies(witness));
  EXPECT_TRUE(IsAlive(spared));
}

}  // namespace
}  // namespace muster::worker
