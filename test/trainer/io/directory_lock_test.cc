#include "trainer/app/training/start.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/forked_members.h"

namespace muster::trainer {
namespace {

using Say = ForkedMembers::Say;

class DirectoryLockTest : public testing::Test {
 protected:
  // A process that takes the lock, says so, and keeps it until it is killed.
  int Keep(const Say& say) const {
    const auto lock = DirectoryLock::Take(dir_.path());
    if (!lock.ok() || !lock->held()) return 1;
    say("held");
    pause();
    return 2;
  }

  const test::TempDir dir_;
};

// Two runs with one --checkpoint-dir removed each other's files, or resumed from the other's.
TEST_F(DirectoryLockTest, ASecondProcessIsToldWhoUsesTheDirectory) {
  ForkedMembers first(1, [this](int, const Say& say) { return Keep(say); });
  ASSERT_TRUE(first.WaitFor(0, "held"));
  const absl::Status refused = DirectoryLock::Take(dir_.path()).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  const std::string sentence(refused.message());
  EXPECT_EQ(sentence.find("use the checkpoint directory " + dir_.path() + ": process "), 0u);
  EXPECT_NE(sentence.find(" is using it; give each run a directory of its own"), std::string::npos)
      << sentence;
}

TEST_F(DirectoryLockTest, TheLockEndsWithItsProcess) {
  ForkedMembers first(1, [this](int, const Say& say) { return Keep(say); });
  ASSERT_TRUE(first.WaitFor(0, "held"));
  first.Signal(0, SIGKILL);
  const auto lock = DirectoryLock::Take(dir_.path());
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(lock->held());
  EXPECT_EQ(lock->warning(), "");
}

// A server keeps the locks of a dead machine for a while; a job that continues elsewhere must not
// fail because of that.
TEST_F(DirectoryLockTest, WhatAnotherMachineHasIsWarnedAbout) {
  ForkedMembers first(1, [this](int, const Say& say) { return Keep(say); });
  ASSERT_TRUE(first.WaitFor(0, "held"));
  std::ofstream(dir_.Path(".lock")) << "12 node7 another-boot\n";
  const auto lock = DirectoryLock::Take(dir_.path());
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_FALSE(lock->held());
  EXPECT_NE(lock->warning().find(" is also in use by process 12 on host node7, unless"),
            std::string::npos)
      << lock->warning();
}

TEST_F(DirectoryLockTest, WhereThereIsNoLockNobodyIsRefused) {
  const auto lock = DirectoryLock::Take(dir_.Path("nowhere"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_FALSE(lock->held());
  EXPECT_EQ(lock->warning(), "");
}

}  // namespace
}  // namespace muster::trainer
