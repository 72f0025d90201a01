// Sharded parameters against one process that has all of them. The comparison is in
// sharding_program.cc.
#include <gtest/gtest.h>

#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

constexpr std::chrono::seconds kDeadline(120);

class ShardingTest : public testing::TestWithParam<std::tuple<const char*, int>> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ShardingTest,
                         testing::Combine(testing::Values("gloo", "shm"),
                                          testing::Values(1, 2, 4)));

TEST_P(ShardingTest, TrainsAsOneProcessDoes) {
  const auto [comm, ranks] = GetParam();
  RunRanks({"test/trainer/sharding/sharding_program", comm}, ranks, kDeadline);
}

TEST(StateMemoryTest, IsTheFormulasByTheAllocator) {
  for (const int ranks : {1, 2, 4}) {
    RunRanks({"test/trainer/sharding/state_memory_program"}, ranks, kDeadline);
  }
}

}  // namespace
}  // namespace muster::trainer
