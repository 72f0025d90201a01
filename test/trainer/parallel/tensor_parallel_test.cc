// A GPT whose layers are split over real ranks against the whole one: loss, gradients, accuracy and
// the weights after 8 steps, and the bytes sent against the formula. The comparison is in
// tensor_rank_program.cc.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

constexpr std::chrono::seconds kTensorParallelDeadline(120);
const std::string kTensorParallelProgram = "test/trainer/parallel/tensor_rank_program";

class TensorParallelTest : public testing::TestWithParam<std::tuple<int, std::string>> {};
INSTANTIATE_TEST_SUITE_P(All, TensorParallelTest,
                         testing::Combine(testing::Values(2, 4), testing::Values("gloo", "shm")),
                         [](const auto& info) {
                           return std::get<1>(info.param) + std::to_string(std::get<0>(info.param));
                         });

TEST_P(TensorParallelTest, TrainsAsOneProcess) {
  RunRanks({kTensorParallelProgram, std::get<1>(GetParam())}, std::get<0>(GetParam()),
           kTensorParallelDeadline);
}

TEST(TensorParallelRefusalTest, NamesTheNumbersOfRanksThatFit) {
  for (const Program& rank :
       RunRanks({kTensorParallelProgram, "gloo"}, 3, kTensorParallelDeadline)) {
    EXPECT_EQ(rank.output(),
              "split the layers of the model over 3 ranks: its 4 attention heads can be shared "
              "equally by 1, 2 or 4 ranks\n");
  }
}

}  // namespace
}  // namespace muster::trainer
