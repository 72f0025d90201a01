// Groups of real ranks: their operations against values computed by hand, over Gloo and in shared
// memory. The checks are in group_program.cc.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "test/support/command.h"
#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

using test::Command;

constexpr std::chrono::seconds kDeadline(120);
const std::string kProgram = "test/trainer/comm/group_program";

std::vector<Command> Start(const std::vector<std::string>& argv, int world_size) {
  const int port = FreePort();
  std::vector<Command> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    std::vector<std::string> environment = {"GLOG_minloglevel=2"};
    for (const auto& [name, value] : RankVariables(rank, world_size, port)) {
      environment.push_back(name + "=" + value);
    }
    ranks.emplace_back(argv, environment);
  }
  return ranks;
}

void RunAll(const std::vector<std::string>& argv, int world_size) {
  std::vector<Command> ranks = Start(argv, world_size);
  for (Command& rank : ranks) EXPECT_EQ(rank.Wait(kDeadline), 0) << rank.err();
}

class GroupTest : public testing::TestWithParam<std::tuple<int, std::string>> {
 protected:
  const int size_ = std::get<0>(GetParam());
  const std::string comm_ = std::get<1>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(All, GroupTest,
                         testing::Combine(testing::Values(1, 2, 3, 4),
                                          testing::Values("gloo", "shm")),
                         [](const auto& info) {
                           return std::get<1>(info.param) + std::to_string(std::get<0>(info.param));
                         });

TEST_P(GroupTest, OperationsAreWhatTheyAreByHand) {
  RunAll({kProgram, comm_, "60", "operations"}, size_);
}

TEST_P(GroupTest, CountsTheBytesOfEachOperation) {
  RunAll({kProgram, comm_, "60", "counts"}, size_);
}

}  // namespace
}  // namespace muster::trainer
