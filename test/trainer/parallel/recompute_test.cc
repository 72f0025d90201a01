// Recomputation inside DistributedDataParallel: the hooks of its Reducer run in a backward pass
// within the backward pass. The comparison is in recompute_rank_program.cc.
#include <gtest/gtest.h>

#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

TEST(RecomputeTest, GradientsOfRanksAreTheSameBits) {
  RunRanks({"test/trainer/parallel/recompute_rank_program"}, 2, std::chrono::seconds(60));
}

}  // namespace
}  // namespace muster::trainer
