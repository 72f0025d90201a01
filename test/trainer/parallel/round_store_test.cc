#include "trainer/comm/round_store.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

namespace muster::trainer {
namespace {

// The roll call's result on each rank, given their reasons for not using NCCL.
std::vector<absl::Status> Roll(const std::vector<std::string>& why_not_nccl) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const int size = static_cast<int>(why_not_nccl.size());
  std::vector<absl::Status> said(why_not_nccl.size());
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto place = static_cast<std::size_t>(rank);
      said[place] = CallRoll(*store, {.rank = rank, .world_size = size, .agent_store = true},
                             why_not_nccl[place]);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return said;
}

TEST(RoundStoreTest, RanksThatChooseTheSameAreFit) {
  for (const char* why_not : {"", "no GPU is visible"}) {
    for (const absl::Status& said : Roll({why_not, why_not, why_not})) {
      EXPECT_TRUE(said.ok()) << said;
    }
  }
}

// Ranks with a GPU waited in NCCL, the others in Gloo, and they never met.
TEST(RoundStoreTest, WhereSomeHaveNoGpuAllAreToldWhoHasNone) {
  for (const absl::Status& said : Roll({"", "", "no GPU is visible"})) {
    EXPECT_EQ(said, absl::InvalidArgumentError(
                        "2 of 3 ranks would use NCCL and the others not, among them rank 2, where "
                        "no GPU is visible: start ranks only where there are GPUs, or give --comm "
                        "gloo to all"));
  }
}

}  // namespace
}  // namespace muster::trainer
