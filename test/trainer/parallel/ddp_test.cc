// Compares gradients averaged by DistributedDataParallel with those of one process that sees the
// whole batch. The comparison is in ddp_rank_program.cc.
#include <gtest/gtest.h>

#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

constexpr std::chrono::seconds kDeadline(60);

TEST(DistributedDataParallelTest, GradientsEqualThoseOfTheWholeBatch) {
  for (const int world_size : {1, 2, 3}) {
    RunRanks({"test/trainer/parallel/ddp_rank_program"}, world_size, kDeadline);
  }
}

}  // namespace
}  // namespace muster::trainer
