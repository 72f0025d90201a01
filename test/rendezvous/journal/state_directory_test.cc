#include "rendezvous/journal/state_directory.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/command.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using muster::test::Command;
using muster::test::TempDir;
using testing::HasSubstr;

mode_t ModeOf(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST(StateDirectoryTest, IsMadeForItsOwnerAlone) {
  const TempDir temp;
  const auto taken = StateDirectory::Take(temp.Path("state"));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(ModeOf(temp.Path("state")), 0700U);
  EXPECT_EQ(ModeOf(temp.Path("state/lock")), 0600U);
  EXPECT_TRUE(taken->Sync().ok());
}

TEST(StateDirectoryTest, SecondIsToldWhoHasIt) {
  const TempDir temp;
  const auto first = StateDirectory::Take(temp.Path("state"));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = StateDirectory::Take(temp.Path("state"));
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_EQ(second.status().message(),
            "state directory " + first->path() + " is in use by the process with pid " +
                std::to_string(::getpid()) + ": stop that one, or name another directory");
}

TEST(StateDirectoryTest, IsFreeOnceTheHolderIsKilled) {
  const TempDir temp;
  Command holder({"test/rendezvous/journal/journal_child", temp.Path("state"), "hold"});
  ASSERT_TRUE(holder.WaitForOut("ready")) << holder.err();
  const auto refused = StateDirectory::Take(temp.Path("state"));
  EXPECT_TRUE(absl::IsAlreadyExists(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("pid " + std::to_string(holder.pid()) + ":"));
  holder.Signal(SIGKILL);
  ASSERT_EQ(holder.Wait(), -SIGKILL);
  const auto taken = StateDirectory::Take(temp.Path("state"));
  EXPECT_TRUE(taken.ok()) << taken.status();
}

// "kill -9, and at once the next start: the directory was in use by a dead process." A child of the
// dead process held the lock for a moment longer.
TEST(StateDirectoryTest, WhatADeadHolderLeftIsWaitedFor) {
  const TempDir temp;
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto taken = StateDirectory::Take(temp.Path("state"));
    // It inherits the lock, and keeps it for 300 ms longer than its parent.
    if (::fork() == 0) {
      ::usleep(300'000);
      ::_exit(0);
    }
    ::_exit(taken.ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(holder, &status, 0), holder);
  ASSERT_EQ(status, 0);
  const auto taken = StateDirectory::Take(temp.Path("state"));
  EXPECT_TRUE(taken.ok()) << taken.status();
}

TEST(StateDirectoryTest, IsFreeOnceTheFirstIsGone) {
  const TempDir temp;
  { ASSERT_TRUE(StateDirectory::Take(temp.Path("state")).ok()); }
  EXPECT_TRUE(StateDirectory::Take(temp.Path("state")).ok());
}

TEST(StateDirectoryTest, LockThatIsALinkIsNotFollowed) {
  const TempDir temp;
  temp.Write("victim", "precious");
  std::filesystem::create_symlink(temp.Path("victim"), temp.Path("lock"));
  const auto refused = StateDirectory::Take(temp.path());
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("it is a symbolic link"));
  EXPECT_EQ(muster::test::ReadAll(temp.Path("victim")), "precious");
}

// Such a directory was accepted, and its owner could give the daemon a forged journal.
TEST(StateDirectoryTest, OneThatOthersCanChangeIsRefused) {
  const TempDir temp;
  const std::string path = temp.Path("state");
  const std::string instead =
      "; name a directory that does not exist yet, and it is created for you alone";
  for (const mode_t mode : {0777, 01777, 0702}) {
    ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const auto refused = StateDirectory::Take(path);
    EXPECT_EQ(refused.status(),
              absl::FailedPreconditionError("use state directory " + path +
                                            ": every user could change its contents" + instead));
    EXPECT_TRUE(std::filesystem::is_empty(path));
    ASSERT_EQ(::rmdir(path.c_str()), 0);
  }
  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(path.c_str(), 02775), 0);
  EXPECT_TRUE(StateDirectory::Take(path).ok()) << "a group that shares it was chosen";
  if (::chown(path.c_str(), 12345, 12345) != 0) {
    GTEST_SKIP() << "only root can give a directory away, and not in a sandbox";
  }
  EXPECT_THAT(std::string(StateDirectory::Take(path).status().message()),
              HasSubstr(path + " is owned by user id 12345, who could change its contents"));
}

// Only the directory itself was checked, and anyone who could rename it could give the daemon
// another one.
TEST(StateDirectoryTest, OneThatOthersCanExchangeIsRefused) {
  const TempDir temp;
  ASSERT_EQ(::mkdir(temp.Path("open").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(temp.Path("open").c_str(), 0777), 0);
  EXPECT_EQ(StateDirectory::Take(temp.Path("open/state")).status().message(),
            "use state directory " + temp.Path("open/state") +
                ": every user could rename files in " + temp.Path("open") + "; `chmod +t " +
                temp.Path("open") + "`, or choose another path");
  EXPECT_TRUE(std::filesystem::is_empty(temp.Path("open")));
  ASSERT_EQ(::chmod(temp.Path("open").c_str(), 01777), 0);
  EXPECT_TRUE(StateDirectory::Take(temp.Path("open/state")).ok()) << "as in /var/tmp";

  ASSERT_EQ(::mkdir(temp.Path("real").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("real", temp.Path("link").c_str()), 0);
  {
    const auto taken = StateDirectory::Take(temp.Path("link"));
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(taken->path(), std::filesystem::canonical(temp.Path("real")));
  }
  if (::lchown(temp.Path("link").c_str(), 12345, 12345) != 0) {
    GTEST_SKIP() << "only root can give a link away, and not in a sandbox";
  }
  EXPECT_THAT(std::string(StateDirectory::Take(temp.Path("link")).status().message()),
              HasSubstr("link is a symbolic link that the user with id 12345 could redirect"));
}

TEST(StateDirectoryTest, WithoutAParentIsNotMade) {
  const TempDir temp;
  const auto refused = StateDirectory::Take(temp.Path("a/b"));
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_EQ(refused.status().message(),
            "make state directory " + temp.Path("a/b") + ": No such file or directory");
}

TEST(StateDirectoryTest, FileIsNoDirectory) {
  const TempDir temp;
  temp.Write("file", "");
  const auto refused = StateDirectory::Take(temp.Path("file"));
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
}

}  // namespace
}  // namespace muster::rendezvous
