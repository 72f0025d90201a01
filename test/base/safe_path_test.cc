// Real files, links and owners. Root gives files to another user, so the tests that need such files
// need root; where there is a race, the other side is a process that swaps without end.
#include "base/safe_path.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "test/support/temp_dir.h"

namespace muster::base {
namespace {

using test::ReadAll;
using test::TempDir;
using testing::HasSubstr;

constexpr uid_t kOther = 12345;

class SafePathTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return temp_.Path(name); }
  std::string MakeDirectory(const std::string& name, mode_t mode = 0755) const {
    EXPECT_EQ(::mkdir(Path(name).c_str(), 0700), 0);
    EXPECT_EQ(::chmod(Path(name).c_str(), mode), 0);
    return Path(name);
  }
  std::string Link(const std::string& target, const std::string& name) const {
    EXPECT_EQ(::symlink(target.c_str(), Path(name).c_str()), 0);
    return Path(name);
  }
  // Also a link itself, and not what it leads to. Skips the test where that is not possible.
  bool GiveAway(const std::string& name) const {
    return ::geteuid() == 0 && ::lchown(Path(name).c_str(), kOther, kOther) == 0;
  }

  std::string Read(const std::string& path, int flags = O_RDONLY | O_NONBLOCK) const {
    const absl::StatusOr<UniqueFd> file = OpenFile(path, flags);
    if (!file.ok()) return std::string(file.status().message());
    char text[64] = {};
    const ssize_t size = ::read(file->get(), text, sizeof text);
    return size < 0 ? "not read" : std::string(text, static_cast<std::size_t>(size));
  }
  static std::string Why(const absl::StatusOr<UniqueFd>& result) {
    return result.ok() ? "taken" : std::string(result.status().message());
  }

  TempDir temp_;
};

TEST_F(SafePathTest, OwnLinksAreFollowed) {
  MakeDirectory("a");
  temp_.Write("a/file", "what is meant");
  Link("a", "relative");
  Link(Path("a"), "absolute");
  Link("../relative/./file", "a/to_file");
  EXPECT_EQ(Read(Path("relative/file")), "what is meant");
  EXPECT_EQ(Read(Path("absolute/../absolute//file")), "what is meant");
  EXPECT_EQ(Read(Path("a/to_file")), "what is meant");
  EXPECT_EQ(Read(Path("a/to_file"), O_RDONLY | O_NOFOLLOW), "it is a symbolic link");
}

TEST_F(SafePathTest, LinkThatAnotherUserMadeIsNotFollowed) {
  MakeDirectory("victim");
  temp_.Write("victim/file", "precious");
  Link("victim", "link");
  Link("victim/file", "to_file");
  if (!GiveAway("link") || !GiveAway("to_file")) GTEST_SKIP() << "needs root";
  const auto refusal = [this](const char* name) {
    return Path(name) +
           " is a symbolic link that the user with id 12345 could redirect; give the path that it "
           "points to";
  };
  EXPECT_EQ(Read(Path("link/file")), refusal("link"));
  EXPECT_EQ(Why(OpenDirectory(Path("link"))), refusal("link"));
  EXPECT_EQ(Why(OpenFile(Path("link/new"), O_WRONLY | O_CREAT, 0600)), refusal("link"));
  EXPECT_EQ(Read(Path("to_file")), refusal("to_file"));
  EXPECT_FALSE(FindSpot(Path("link/new")).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(OpenDirectory(Path("link")).status()));
  EXPECT_NE(::access(Path("victim/new").c_str(), F_OK), 0);
}

TEST_F(SafePathTest, OwnLinkIsNotFollowedWhereAnotherCouldSwapIt) {
  MakeDirectory("a");
  MakeDirectory("theirs");
  Link("../a", "theirs/link");
  MakeDirectory("open", 0777);
  Link("../a", "open/link");
  MakeDirectory("sticky", 01777);
  Link("../a", "sticky/link");
  EXPECT_EQ(
      Why(OpenDirectory(Path("open/link"))),
      Path("open/link") +
          " is a symbolic link that every user could redirect; give the path that it points to");
  EXPECT_EQ(Why(OpenDirectory(Path("sticky/link"))), "taken") << "as everybody's are in /tmp";
  if (!GiveAway("theirs")) GTEST_SKIP() << "needs root";
  EXPECT_THAT(Why(OpenDirectory(Path("theirs/link"))), HasSubstr("the user with id 12345"));
}

TEST_F(SafePathTest, WhatAnotherHasPutIntoSharedDirectoryIsNotTaken) {
  MakeDirectory("sticky", 01777);
  MakeDirectory("sticky/logs");
  temp_.Write("sticky/log", "his");
  temp_.Write("sticky/mine", "mine");
  EXPECT_EQ(Read(Path("sticky/mine")), "mine");
  if (!GiveAway("sticky/logs") || !GiveAway("sticky/log")) GTEST_SKIP() << "needs root";
  const std::string why =
      " is owned by user id 12345, in a directory where every user can create files; remove it, or "
      "choose another path";
  EXPECT_EQ(Read(Path("sticky/log")), Path("sticky/log") + why);
  EXPECT_EQ(Why(OpenFile(Path("sticky/log"), O_WRONLY | O_CREAT | O_APPEND, 0600)),
            Path("sticky/log") + why);
  EXPECT_EQ(Why(OpenFile(Path("sticky/logs/new"), O_WRONLY | O_CREAT, 0600)),
            Path("sticky/logs") + why);
  EXPECT_EQ(Why(OpenDirectory(Path("sticky/logs"))), Path("sticky/logs") + why);
}

TEST_F(SafePathTest, DirectoryOfAnotherIsTakenUnlessItIsToBeOursAlone) {
  MakeDirectory("theirs");
  MakeDirectory("theirs/a");
  MakeDirectory("open", 0777);
  MakeDirectory("open/a");
  MakeDirectory("sticky", 01777);
  MakeDirectory("sticky/a");
  MakeDirectory("group", 0775);
  const PathOptions alone{.ours_alone = true};
  EXPECT_EQ(Why(OpenDirectory(Path("open/a"))), "taken");
  EXPECT_EQ(Why(OpenDirectory(Path("open/a"), alone)),
            "every user could rename files in " + Path("open") + "; `chmod +t " + Path("open") +
                "`, or choose another path");
  EXPECT_EQ(Why(OpenDirectory(Path("sticky/a"), alone)), "taken");
  EXPECT_EQ(Why(OpenDirectory(Path("group"), alone)), "taken") << "a group that was chosen";
  if (!GiveAway("theirs")) GTEST_SKIP() << "needs root";
  EXPECT_EQ(Why(OpenDirectory(Path("theirs/a"))), "taken") << "the user has named it";
  EXPECT_EQ(Why(OpenDirectory(Path("theirs/a"), alone)),
            Path("theirs") +
                " is owned by user id 12345, who could change its contents; choose another path");
  EXPECT_FALSE(FindSpot(Path("theirs/new"), alone).ok());
}

TEST_F(SafePathTest, MissingDirectoriesAreMadeIfThatIsWanted) {
  EXPECT_TRUE(absl::IsNotFound(OpenDirectory(Path("a/b")).status()));
  EXPECT_EQ(Why(OpenDirectory(Path("a/b"))), "No such file or directory");
  EXPECT_EQ(Why(OpenDirectory(Path("a/b/"), {.make = 0700})), "taken");
  struct stat info = {};
  ASSERT_EQ(::stat(Path("a/b").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  const auto spot = FindSpot(Path("a/c/new"), {.make = 0700});
  ASSERT_TRUE(spot.ok()) << spot.status();
  EXPECT_EQ(spot->name, "new");
  EXPECT_EQ(::mkdirat(spot->directory.get(), "new", 0700), 0);
  EXPECT_EQ(::access(Path("a/c/new").c_str(), F_OK), 0);
}

TEST_F(SafePathTest, MistakesAreSaidAsOpenSaysThem) {
  temp_.Write("file", "text");
  Link("loop", "loop");
  Link("nowhere", "dangling");
  EXPECT_EQ(Read(Path("file/x")), "Not a directory");
  EXPECT_EQ(Read(Path("loop")), "Too many levels of symbolic links");
  EXPECT_EQ(Read(Path("loop/x")), "Too many levels of symbolic links");
  EXPECT_EQ(Read(Path("dangling")), "No such file or directory");
  EXPECT_EQ(Read(""), "No such file or directory");
  EXPECT_EQ(Read("/"), "not read");
  EXPECT_EQ(Why(OpenDirectory("/")), "taken");
  EXPECT_EQ(Why(OpenDirectory(".")), "taken");
  EXPECT_EQ(Why(OpenDirectory("./..")), "taken");
  EXPECT_EQ(Why(OpenFile(Path("dangling"), O_WRONLY | O_CREAT, 0600)), "taken");
  EXPECT_EQ(::access(Path("nowhere").c_str(), F_OK), 0);
  EXPECT_EQ(Why(OpenFile(Path("file"), O_WRONLY | O_CREAT | O_EXCL, 0600)), "File exists");
}

TEST_F(SafePathTest, RelativePathBeginsAtTheWorkingDirectory) {
  MakeDirectory("a");
  temp_.Write("a/file", "here");
  const std::string before = std::filesystem::current_path();
  ASSERT_EQ(::chdir(Path("a").c_str()), 0);
  EXPECT_EQ(Read("file"), "here");
  EXPECT_EQ(Read("../a/./file"), "here");
  ASSERT_EQ(::chdir(before.c_str()), 0);
}

TEST_F(SafePathTest, KernelsOwnLinksAreFollowed) {
  temp_.Write("file", "by number");
  const UniqueFd file(::open(Path("file").c_str(), O_RDWR | O_CLOEXEC));
  const UniqueFd directory(::open(temp_.path().c_str(), O_PATH | O_CLOEXEC));
  EXPECT_EQ(Read("/proc/self/fd/" + std::to_string(file.get())), "by number");
  EXPECT_EQ(Read("/dev/fd/" + std::to_string(file.get())), "by number");
  EXPECT_EQ(Read("/proc/self/fd/" + std::to_string(directory.get()) + "/file"), "by number");
  EXPECT_EQ(Why(OpenFile("/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0600)), "taken");
}

// A process exchanges a directory and a link to the victim's as fast as it can.
TEST_F(SafePathTest, LinkThatIsSwappedInMeanwhileIsNeverFollowed) {
  MakeDirectory("victim");
  MakeDirectory("place");
  Link("victim", "link");
  if (!GiveAway("link")) GTEST_SKIP() << "needs root";
  const pid_t other = ::fork();
  if (other == 0) {
    constexpr unsigned kExchange = 2;
    for (;;) {
      ::syscall(SYS_renameat2, AT_FDCWD, Path("place").c_str(), AT_FDCWD, Path("link").c_str(),
                kExchange);
    }
  }
  int taken = 0, refused = 0;
  for (int i = 0; i < 200'000 && (i < 2000 || taken == 0 || refused == 0); ++i) {
    const auto file = OpenFile(Path("place/log"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ++(file.ok() ? taken : refused);
  }
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  EXPECT_GT(taken, 0);
  EXPECT_GT(refused, 0);
  EXPECT_NE(::access(Path("victim/log").c_str(), F_OK), 0) << "the link was followed";
}

// The same with a file: what was looked at is what is open.
TEST_F(SafePathTest, FileThatIsSwappedInMeanwhileIsNeverTaken) {
  MakeDirectory("sticky", 01777);
  temp_.Write("sticky/mine", "mine");
  temp_.Write("sticky/his", "his");
  if (!GiveAway("sticky/his")) GTEST_SKIP() << "needs root";
  const pid_t other = ::fork();
  if (other == 0) {
    constexpr unsigned kExchange = 2;
    for (;;) {
      ::syscall(SYS_renameat2, AT_FDCWD, Path("sticky/mine").c_str(), AT_FDCWD,
                Path("sticky/his").c_str(), kExchange);
    }
  }
  int taken = 0, refused = 0;
  for (int i = 0; i < 200'000 && (i < 2000 || taken == 0 || refused == 0); ++i) {
    const std::string text = Read(Path("sticky/mine"));
    ++(text == "mine" ? taken : refused);
    if (text == "his") ADD_FAILURE() << "the other user's file was taken";
  }
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  EXPECT_GT(taken, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace muster::base
