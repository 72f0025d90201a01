// What a detached run leaves for whoever looks for it.
#include "launcher/run/detached_run.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A run whose output had filled the disk ended well, and `muster attach` said that it was killed.
TEST(DetachedRunTest, AFullDiskHasRoomForTheExitCode) {
  const test::TempDir dir;
  auto run = DetachedRun::Create(dir.path(), "full");
  ASSERT_TRUE(run.ok()) << run.status();
  const auto found = FindDetached(dir.path(), "full");
  ASSERT_THAT(found, SizeIs(1));
  auto end = DetachedEnd::Open(found.front());
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_code(), -1);
  // Files grow no further.
  struct stat info = {};
  ASSERT_EQ(::stat(found.front().end.c_str(), &info), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit full = before;
  full.rlim_cur = static_cast<rlim_t>(info.st_size);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  run->Finish(143);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(end->exit_code(), 143);
}

// Of two containers with one home, the second to detach a run of that id and pid removed the files
// of the first, and with them its output.
TEST(DetachedRunTest, OneThatLivesKeepsItsFiles) {
  const test::TempDir dir;
  const auto first = DetachedRun::Create(dir.path(), "big");
  ASSERT_TRUE(first.ok()) << first.status();
  // The pid is this process's again.
  const auto second = DetachedRun::Create(dir.path(), "big");
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("has the same name and pid; start this one again"));
  EXPECT_EQ(::access(first->path().c_str(), F_OK), 0);
}

// A FIFO in the directory kept `muster attach` and `muster stop` waiting for ever, and a link
// showed what it led to.
TEST(DetachedRunTest, WhatNoRunMadeIsPassedOver) {
  const test::TempDir dir;
  dir.Write("fifo-99.out", "");
  ASSERT_EQ(::mkfifo(dir.Path("fifo-99.end").c_str(), 0600), 0);
  dir.Write("link-99.end", "");
  ASSERT_EQ(::symlink("/etc/passwd", dir.Path("link-99.out").c_str()), 0);
  EXPECT_THAT(FindDetached(dir.path(), "99"), IsEmpty());
  EXPECT_TRUE(DetachedEnd::Open({.end = dir.Path("fifo-99.end")}).ok()) << "at once";
}

// A run of any name is found by it, and by no other's.
TEST(DetachedRunTest, RunsAreFoundByAnyNameTheyHave) {
  const std::string long_name(255, 'x');
  for (const std::string& name :
       {std::string("me@host:7"), std::string("team/exp 1"), std::string("../../up"),
        std::string("100 %"), std::string("größe"), std::string("-rf"), std::string(".."),
        long_name}) {
    const test::TempDir dir;
    const auto run = DetachedRun::Create(dir.path(), name);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->path().rfind('/'), dir.path().size()) << run->path();
    EXPECT_THAT(FindDetached(dir.path(), name), SizeIs(1)) << name;
    EXPECT_THAT(FindDetached(dir.path(), name + "y"), IsEmpty()) << name;
    EXPECT_THAT(FindDetached(dir.path(), "team_exp 1"), IsEmpty());
  }
}

}  // namespace
}  // namespace muster::launcher
