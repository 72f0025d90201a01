// Unmodified PyTorch scripts under Muster, as under torchrun: two agents with two workers each.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

// Four processes that import torch, on a machine that may have one slow core.
constexpr std::chrono::seconds kDeadline(240);

struct Case {
  const char* script;
  // What each rank prints after "rank R of 4: ".
  const char* said;
};

class PythonTorchTest : public E2eTest {
 protected:
  void SetUp() override {
    Command import({"/usr/bin/python3", "-c", "import torch.distributed"});
    if (import.Wait(kDeadline) != 0) {
      GTEST_SKIP() << "/usr/bin/python3 has no torch (Debian: python3-torch)";
    }
  }

  // Runs the script on two agents that meet at `port`, with these additional flags.
  void ExpectAllRanksSay(const Case& c, const std::vector<std::string>& flags,
                         bool static_ranks = false) {
    const HeldPort port;
    std::vector<Command> agents;
    for (const char* node_rank : {"0", "1"}) {
      std::vector<std::string> arguments = {"--nnodes=2", "--nproc-per-node=2", "--max-restarts=1"};
      if (static_ranks) {
        arguments.insert(arguments.end(),
                         {"--master-addr=127.0.0.1", "--master-port=" + port.number(),
                          std::string("--node-rank=") + node_rank});
      } else {
        arguments.push_back("--rdzv-endpoint=" + port.endpoint());
      }
      arguments.insert(arguments.end(), flags.begin(), flags.end());
      arguments.push_back(std::string("test/e2e/torch/") + c.script);
      // Gloo and TensorPipe would look for the address of this machine's name, which may have none.
      agents.push_back(StartMuster(arguments, {"PYTHON_EXEC=/usr/bin/python3",
                                               "GLOO_SOCKET_IFNAME=lo", "TP_SOCKET_IFNAME=lo"}));
    }
    std::string out;
    for (Command& agent : agents) {
      EXPECT_EQ(agent.Wait(kDeadline), 0) << agent.err();
      out += agent.out();
    }
    for (int rank = 0; rank < 4; ++rank) {
      // Python writes line ends separately, so those of two ranks may come together.
      EXPECT_TRUE(Contains(out, "rank " + std::to_string(rank) + " of 4: " + c.said));
    }
  }
};

constexpr Case kAllReduce = {"all_reduce.py", "sum 10"};
constexpr Case kCollectives = {"collectives.py", "collectives are right"};
constexpr Case kLargeValue = {"large_value.py", "16 MiB are right"};
constexpr Case kRpc = {"rpc.py", "rpc is right"};
constexpr Case kDdpRestart = {"ddp_restart.py", "20 steps in attempt 1, all ranks alike"};

TEST_F(PythonTorchTest, CollectivesGroupsAndObjects) {
  ExpectAllRanksSay(kCollectives, {});
}

// The connection of a rank that set a value above 8 MiB was closed.
TEST_F(PythonTorchTest, LargeValuesInTheStore) {
  ExpectAllRanksSay(kLargeValue, {});
}

TEST_F(PythonTorchTest, RemoteProcedureCalls) {
  ExpectAllRanksSay(kRpc, {});
}

TEST_F(PythonTorchTest, DistributedDataParallelFailsOnceAndRunsAgain) {
  ExpectAllRanksSay(kDdpRestart, {});
}

TEST_F(PythonTorchTest, StoreOnTheOnePortOfStaticNodes) {
  ExpectAllRanksSay(kDdpRestart, {}, /*static_ranks=*/true);
}

TEST_F(PythonTorchTest, StoreThroughATunnel) {
  ExpectAllRanksSay(kCollectives, {"--worker-store=tunnel"});
  ExpectAllRanksSay(kDdpRestart, {"--worker-store=tunnel"});
}

TEST_F(PythonTorchTest, StoreOfTheWorkerWithRankZero) {
  ExpectAllRanksSay(kAllReduce, {"--worker-store=worker"});
}

}  // namespace
}  // namespace muster::test
