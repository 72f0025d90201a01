// An unmodified script of PyTorch's under Muster, as under torchrun.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

// Four processes that import torch, on a machine that may have one slow core.
constexpr std::chrono::seconds kDeadline(240);

class PythonTorchTest : public E2eTest {};

TEST_F(PythonTorchTest, FourRanksOnTwoAgentsReduce) {
  Command import({"/usr/bin/python3", "-c", "import torch.distributed"});
  if (import.Wait(kDeadline) != 0) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch (Debian: python3-torch)";
  }
  const HeldPort port;
  const std::vector<std::string> arguments = {"--nnodes=2", "--nproc-per-node=2",
                                              "--rdzv-endpoint=" + port.endpoint(),
                                              "test/e2e/all_reduce.py"};
  // Gloo would look for the address that this machine's name has, which may be none.
  const std::vector<std::string> environment = {"PYTHON_EXEC=/usr/bin/python3",
                                                "GLOO_SOCKET_IFNAME=lo"};
  Command one = StartMuster(arguments, environment);
  Command other = StartMuster(arguments, environment);
  EXPECT_EQ(one.Wait(kDeadline), 0) << one.err();
  EXPECT_EQ(other.Wait(kDeadline), 0) << other.err();
  for (int rank = 0; rank < 4; ++rank) {
    // Python writes the end of a line by itself, so the ends of two ranks' lines may come together.
    EXPECT_TRUE(
        Contains(one.out() + other.out(), "rank " + std::to_string(rank) + " of 4: sum 10"));
  }
}

}  // namespace
}  // namespace muster::test
