// What a detached run leaves for whoever looks for it.
#include "launcher/registry/detached_run.h"

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

}  // namespace
}  // namespace muster::launcher
