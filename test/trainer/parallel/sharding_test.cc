// Sharded parameters against one process that has all of them. The comparison is in
// sharding_program.cc.
#include <gtest/gtest.h>

#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

constexpr std::chrono::seconds kShardingDeadline(120);

class ShardingTest : public testing::TestWithParam<std::tuple<const char*, int>> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ShardingTest,
                         testing::Combine(testing::Values("gloo", "shm"),
                                          testing::Values(1, 2, 4)));

TEST_P(ShardingTest, TrainsAsOneProcessDoes) {
  const auto [comm, ranks] = GetParam();
  RunRanks({"test/trainer/parallel/sharding_program", comm}, ranks, kShardingDeadline);
}

TEST(StateMemoryTest, IsTheFormulasByTheAllocator) {
  for (const int ranks : {1, 2, 4}) {
    RunRanks({"test/trainer/parallel/state_memory_program"}, ranks, kShardingDeadline);
  }
}

}  // namespace
}  // namespace muster::trainer
