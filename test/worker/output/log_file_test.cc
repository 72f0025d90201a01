#include "worker/output/stream_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::worker {
namespace {

using test::ReadAll;
using test::TempDir;

mode_t ModeOf(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

TEST(LogFileTest, MissingDirectoriesAreMadeForTheOwnerOnly) {
  TempDir dir;
  ASSERT_TRUE(OpenLogFile(dir.Path("run/attempt_0/1/stderr.log")).ok());
  EXPECT_EQ(ModeOf(dir.Path("run/attempt_0/1/stderr.log")), 0600u);
  EXPECT_EQ(ModeOf(dir.Path("run/attempt_0")), 0700u);
}

TEST(LogFileTest, WhatIsThereIsAppendedTo) {
  TempDir dir;
  const std::string path = dir.Write("log", "before\n");
  const auto file = OpenLogFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(::write(file->get(), "after\n", 6), 6);
  EXPECT_EQ(ReadAll(path), "before\nafter\n");
  EXPECT_EQ(::fcntl(file->get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(::fcntl(file->get(), F_GETFL) & O_NONBLOCK, 0) << "a worker expects writes that wait";
}

TEST(LogFileTest, SymbolicLinkIsNotFollowed) {
  TempDir dir;
  ASSERT_EQ(::symlink("/etc/passwd", dir.Path("log").c_str()), 0);
  EXPECT_EQ(OpenLogFile(dir.Path("log")).status().message(),
            "open log file " + dir.Path("log") + ": it is a symbolic link");
}

// B43: "the directory of logs was a link that another user had made to /etc".
TEST(LogFileTest, LinkOfAnotherUserOnTheWayIsNotFollowed) {
  TempDir dir;
  ASSERT_EQ(::mkdir(dir.Path("victim").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("victim", dir.Path("logs").c_str()), 0);
  EXPECT_TRUE(OpenLogFile(dir.Path("logs/1/log")).ok()) << "one's own link leads where it leads";
  if (::geteuid() != 0 || ::lchown(dir.Path("logs").c_str(), 12345, 12345) != 0) {
    GTEST_SKIP() << "only root can give a link away";
  }
  EXPECT_EQ(OpenLogFile(dir.Path("logs/2/log")).status().message(),
            "open log file " + dir.Path("logs/2/log") + ": " + dir.Path("logs") +
                " is a symbolic link that the user with id 12345 could redirect; give the path "
                "that it points to");
  EXPECT_NE(::access(dir.Path("victim/2").c_str(), F_OK), 0);
}

// B44: a file that another user created there before, to read what the workers print.
TEST(LogFileTest, FileOfAnotherUserInSharedDirectoryIsNotWrittenTo) {
  TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 01777), 0);
  const std::string path = dir.Write("log", "", 0666);
  if (::geteuid() != 0 || ::chown(path.c_str(), 12345, 12345) != 0) {
    GTEST_SKIP() << "only root can give a file away";
  }
  EXPECT_EQ(OpenLogFile(path).status().message(),
            "open log file " + path + ": " + path +
                " is owned by user id 12345, in a directory where every user can create files; "
                "remove it, or choose another path");
}

TEST(LogFileTest, HardLinkIsNotWrittenThrough) {
  TempDir dir;
  const std::string victim = dir.Write("victim", "precious");
  ASSERT_EQ(::link(victim.c_str(), dir.Path("log").c_str()), 0);
  EXPECT_EQ(OpenLogFile(dir.Path("log")).status().message(),
            "open log file " + dir.Path("log") +
                ": it has another hard link; remove it, or choose another path");
}

TEST(LogFileTest, FifoIsRefusedInsteadOfWaitedFor) {
  TempDir dir;
  const std::string path = dir.Path("log");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(OpenLogFile(path).ok()) << "without a reader";
  const base::UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(OpenLogFile(path).status().message(),
            "open log file " + path + ": it is not a regular file");
}

TEST(LogFileTest, DirectoryInTheWayIsNamed) {
  TempDir dir;
  dir.Write("log", "a file where a directory should be");
  EXPECT_EQ(OpenLogFile(dir.Path("log/0/stdout.log")).status().message(),
            "open log file " + dir.Path("log/0/stdout.log") + ": Not a directory");
}

TEST(LogFileTest, FullDiskDropsCountsAndTellsOnce) {
  auto writer = LogWriter::Open("/dev/full");
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_EQ(writer->Write("one\n"), "write /dev/full: No space left on device");
  EXPECT_EQ(writer->Write("two\n"), "");
  EXPECT_EQ(writer->dropped_bytes(), 8u);
}

TEST(LogFileTest, SeveralWritersOfOneFileAppend) {
  TempDir dir;
  auto first = LogWriter::Open(dir.Path("log"));
  auto second = LogWriter::Open(dir.Path("log"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->Write("one\n"), "");
  EXPECT_EQ(second->Write("two\n"), "");
  EXPECT_EQ(first->Write("three\n"), "");
  EXPECT_EQ(ReadAll(dir.Path("log")), "one\ntwo\nthree\n");
}

}  // namespace
}  // namespace muster::worker
