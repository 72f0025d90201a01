// The workers' control group, on machines that permit one.
#include "worker/tree/cgroup.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "worker/process/spawn.h"

namespace muster::worker {
namespace {

using test::ReadAll;
using test::TempDir;

TEST(CgroupTest, WhatHasJoinedIsKilledAsOneAndTheGroupIsRemoved) {
  auto group = WorkerCgroup::Create();
  if (!group.has_value()) GTEST_SKIP() << "no writable cgroup v2 with cgroup.kill here";
  const std::string path = group->path();
  SpawnRequest request;
  request.argv = {"sleep", "10000"};
  request.join_fd = group->join_fd();
  const auto process = Spawn(request);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(ReadAll(path + "/cgroup.procs"), std::to_string(process->pid) + "\n");
  EXPECT_EQ(ReadAll(path + "/cgroup.subtree_control").find_first_not_of('\n'), std::string::npos)
      << "no controller is enabled";
  EXPECT_TRUE(group->IsPopulated());
  group->Kill();
  int status = 0;
  ::waitpid(process->pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_FALSE(group->IsPopulated());
  // As a killed worker that is an agent itself would leave one.
  ASSERT_EQ(::mkdir((path + "/inner").c_str(), 0755), 0);
  group.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(CgroupTest, WhereTheKernelGivesNoneNoneIsUsed) {
  TempDir dir;
  EXPECT_FALSE(WorkerCgroup::Create(std::nullopt).has_value());
  EXPECT_FALSE(WorkerCgroup::Create(CgroupPath{dir.path(), 0}).has_value());
  // Looks like a group, but a directory created in it stays empty.
  dir.Write("cgroup.procs", "");
  EXPECT_FALSE(WorkerCgroup::Create(CgroupPath{dir.path(), 0}).has_value());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1)
      << "nothing is left behind";
}

TEST(CgroupTest, ProcessThatMayNotJoinRunsAllTheSame) {
  const base::UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  SpawnRequest request;
  request.argv = {"true"};
  request.join_fd = full.get();
  const auto process = Spawn(request);
  ASSERT_TRUE(process.ok()) << process.status();
  int status = -1;
  ::waitpid(process->pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace muster::worker
