// Real ranks in worlds of 1, 2 and 4: compares gradients and statistics with one process that sees
// the whole batch, and shared memory with Gloo, and tests ranks that die or stop. The comparisons
// are in ddp_options_program.cc and reduce_program.cc.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "test/support/command.h"
#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

using test::Command;

constexpr std::chrono::seconds kDeadline(120);

std::vector<Command> Start(const std::vector<std::string>& argv, int world_size) {
  const int port = FreePort();
  std::vector<Command> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.emplace_back(
        argv,
        std::vector<std::string>{
            "RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(world_size),
            "LOCAL_RANK=" + std::to_string(rank), "LOCAL_WORLD_SIZE=" + std::to_string(world_size),
            "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port), "OMP_NUM_THREADS=1",
            "GLOG_minloglevel=2"});
  }
  return ranks;
}

// Runs the ranks to their end; returns rank 0's output.
std::string RunAll(const std::vector<std::string>& argv, int world_size) {
  std::vector<Command> ranks = Start(argv, world_size);
  for (Command& rank : ranks) EXPECT_EQ(rank.Wait(kDeadline), 0) << rank.err();
  return ranks[0].out();
}

const std::string kDdp = "test/trainer/comm/ddp_options_program";
const std::string kReduce = "test/trainer/comm/reduce_program";

class CommTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(World, CommTest, testing::Values(1, 2, 4),
                         testing::PrintToStringParamName());

TEST_P(CommTest, EveryDdpOptionOverGloo) {
  RunAll({kDdp, "gloo"}, GetParam());
}

// "Unable to find address for: lo,lo": PyTorch accepts several interfaces, and distributes
// connections.
TEST(InterfacesTest, GlooMayHaveSeveral) {
  RunAll({"/usr/bin/env", "GLOO_SOCKET_IFNAME=lo,lo", kDdp, "gloo"}, 2);
}

TEST_P(CommTest, EveryDdpOptionOverSharedMemory) {
  RunAll({kDdp, "shm"}, GetParam());
}

TEST_P(CommTest, SumsAndMeanWeightsThroughSharedMemoryAreGloos) {
  const std::string said = RunAll({kReduce, "auto", "equal", "average"}, GetParam());
  EXPECT_EQ(said, GetParam() == 1
                      ? "Gloo: one rank, which sends nothing\n"
                      : "shared memory: " + std::to_string(GetParam()) + " ranks on one host\n");
}

TEST_P(CommTest, SumsMeanWeightsAndSyncBatchNormOverGloo) {
  EXPECT_EQ(RunAll({kReduce, "gloo", "equal", "average", "batch-norm"}, GetParam()),
            "Gloo: as asked\n");
}

// All files in /dev/shm, whoever created them.
std::set<std::string> SharedFiles() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(entry.path().filename());
  }
  return names;
}

// "One rank was killed, and the others hung until the 5 minutes were over."
TEST(LostRankTest, IsNamedInTheErrorOfEachOther) {
  const std::set<std::string> before = SharedFiles();
  std::vector<Command> ranks = Start({kReduce, "shm", "for-ever"}, 3);
  for (Command& rank : ranks) ASSERT_TRUE(rank.WaitForOut("under way")) << rank.err();
  for (const std::string& name : SharedFiles()) {
    EXPECT_TRUE(before.contains(name)) << name << " has appeared in /dev/shm";
  }
  ranks[1].Signal(SIGKILL);
  const std::string sentence =
      "shared memory: rank 1 (pid " + std::to_string(ranks[1].pid()) + ") is gone";
  for (const std::size_t other : {0UL, 2UL}) {
    EXPECT_EQ(ranks[other].Wait(), 3);
    EXPECT_NE(ranks[other].err().find(sentence), std::string::npos) << ranks[other].err();
  }
}

TEST(TwoHostsTest, SharedMemoryInsideAndGlooBetween) {
  Command allowed({"unshare", "--map-root-user", "--net", "unshare", "--net", "ip", "link"});
  if (allowed.Wait() != 0) {
    GTEST_SKIP() << "this machine does not let us make network namespaces (unshare --net)";
  }
  Command hosts({"unshare", "--map-root-user", "--net", "sh", "test/trainer/comm/two_hosts.sh",
                 kReduce, "auto", "equal", "average"});
  EXPECT_EQ(hosts.Wait(kDeadline), 0) << hosts.err();
  EXPECT_EQ(hosts.out(), "shared memory: 4 ranks on 2 hosts, and Gloo between the hosts\n");
  Command ddp(
      {"unshare", "--map-root-user", "--net", "sh", "test/trainer/comm/two_hosts.sh", kDdp, "shm"});
  EXPECT_EQ(ddp.Wait(kDeadline), 0) << ddp.err();
}

// The start-up line said "joined: shm", and then there was no memory for the gradients.
TEST(SmallShmTest, WhatIsTooSmallForGradientsIsNotChosen) {
  Command allowed({"unshare", "--map-root-user", "--net", "--mount", "mount", "-t", "tmpfs", "none",
                   "/dev/shm"});
  if (allowed.Wait() != 0) {
    GTEST_SKIP() << "this machine does not let us mount in a namespace (unshare --mount)";
  }
  Command ranks({"unshare", "--map-root-user", "--net", "--mount", "sh",
                 "test/trainer/comm/small_shm.sh", "192k", kReduce, "auto", "equal", "average"});
  EXPECT_EQ(ranks.Wait(kDeadline), 0) << ranks.err();
  EXPECT_NE(ranks.out().find("no shared memory: "), std::string::npos) << ranks.out();
}

}  // namespace
}  // namespace muster::trainer
