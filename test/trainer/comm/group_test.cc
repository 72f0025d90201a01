// Groups of real ranks: their operations against values computed by hand, over Gloo and in shared
// memory, several groups at once, and groups whose members are lost. The checks are in
// group_program.cc.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <tuple>
#include <vector>

#include "test/support/command.h"
#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

using test::Command;

constexpr std::chrono::seconds kGroupDeadline(120);
const std::string kProgram = "test/trainer/comm/group_program";

std::vector<Command> StartGroup(const std::vector<std::string>& argv, int world_size) {
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

void RunWholeGroup(const std::vector<std::string>& argv, int world_size) {
  std::vector<Command> ranks = StartGroup(argv, world_size);
  for (Command& rank : ranks) EXPECT_EQ(rank.Wait(kGroupDeadline), 0) << rank.err();
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
  RunWholeGroup({kProgram, comm_, "60", "operations"}, size_);
}

TEST_P(GroupTest, CountsTheBytesOfEachOperation) {
  RunWholeGroup({kProgram, comm_, "60", "counts"}, size_);
}

class SeveralGroupsTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, SeveralGroupsTest, testing::Values("gloo", "shm"),
                         [](const auto& info) { return info.param; });

TEST_P(SeveralGroupsTest, AreMadeAndUsedByTheirMembersAlone) {
  RunWholeGroup({kProgram, GetParam(), "60", "groups"}, 4);
}

TEST(LostMemberTest, OthersAreToldOfWhichGroup) {
  std::vector<Command> ranks = StartGroup({kProgram, "gloo", "10", "lost-member"}, 3);
  ASSERT_TRUE(ranks[1].WaitForOut("making")) << ranks[1].err();
  ranks[1].Signal(SIGKILL);
  EXPECT_EQ(ranks[1].Wait(kGroupDeadline), -SIGKILL);
  for (const std::size_t other : {0UL, 2UL}) {
    EXPECT_EQ(ranks[other].Wait(kGroupDeadline), 0);
    EXPECT_NE(ranks[other].err().find("make the group half of ranks 0, 1, 2: "), std::string::npos)
        << ranks[other].err();
  }
}

// "With four groups on each rank, all-reduce 812 could have been any group's."
TEST(LostMemberTest, IsReportedWithTheGroupInWhichOthersWait) {
  std::vector<Command> ranks = StartGroup({kProgram, "gloo", "60", "lost-in-operation"}, 2);
  for (Command& rank : ranks) EXPECT_EQ(rank.Wait(kGroupDeadline), 0) << rank.err();
  EXPECT_NE(ranks[0].err().find("rank 0 waits in all-reduce 2 of tp/0 (400 bytes) for "),
            std::string::npos)
      << ranks[0].err();
  EXPECT_NE(ranks[0].err().find("rank 1 left all-reduce 1 of tp/0 (8 bytes) "), std::string::npos)
      << ranks[0].err();
}

}  // namespace
}  // namespace muster::trainer
