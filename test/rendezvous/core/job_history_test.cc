// What is remembered of a job's rounds.
#include "rendezvous/core/job/job_history.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;

std::vector<Placement> Members(int nodes, int slots) {
  std::vector<Placement> members;
  for (int i = 0; i < nodes; ++i) {
    members.push_back({.node = {.slots = slots}, .group_rank = i});
  }
  return members;
}

TEST(JobHistoryTest, RoundsHaveTheirTimesAndTheReasonOfTheirEnd) {
  const TimePoint start{seconds(100)};
  JobHistory history(0, start);
  const RoundStarted first = history.Start(Members(2, 4), start + seconds(3));
  EXPECT_EQ(first.gathered, seconds(3));
  EXPECT_FALSE(first.is_restart);
  const RoundOver over =
      history.End(RoundEnd::kNodeLost, "node b was lost", 1, start + seconds(10));
  EXPECT_EQ(over.ran, seconds(7));
  const RoundStarted second = history.Start(Members(1, 4), start + seconds(12));
  EXPECT_EQ(second.gathered, seconds(2));
  EXPECT_TRUE(second.is_restart);

  EXPECT_EQ(history.Age(start + seconds(20)), seconds(20));
  const auto rounds = history.Describe(start + seconds(20));
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(rounds[0].opened_ago, seconds(20));
  EXPECT_EQ(rounds[0].gathered, seconds(3));
  EXPECT_EQ(rounds[0].ran, seconds(7));
  EXPECT_EQ(rounds[0].nodes, 2);
  EXPECT_EQ(rounds[0].workers, 8);
  EXPECT_EQ(rounds[0].end, RoundEnd::kNodeLost);
  EXPECT_EQ(rounds[0].reason, "node b was lost");
  EXPECT_EQ(rounds[1].number, 1);
  EXPECT_EQ(rounds[1].ran, seconds(8));
  EXPECT_EQ(rounds[1].end, std::nullopt);
}

TEST(JobHistoryTest, RoundThatNeverRanCostsNoRunningTime) {
  JobHistory history(4, TimePoint{});
  EXPECT_EQ(history.End(RoundEnd::kNodeLeaving, "", 5, TimePoint{seconds(1)}).ran, std::nullopt);
  const auto rounds = history.Describe(TimePoint{seconds(2)});
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(rounds[0].number, 4);
  EXPECT_EQ(rounds[0].gathered, std::nullopt);
  EXPECT_FALSE(history.Start(Members(1, 1), TimePoint{seconds(3)}).is_restart);
}

TEST(JobHistoryTest, OnlyTheLastRoundsAreKept) {
  JobHistory history(0, TimePoint{});
  for (int round = 1; round <= 200; ++round) {
    history.End(RoundEnd::kNodeJoined, "", round, TimePoint{seconds(round)});
  }
  const auto rounds = history.Describe(TimePoint{seconds(300)});
  ASSERT_EQ(rounds.size(), JobHistory::kMost);
  EXPECT_EQ(rounds.back().number, 200);
}

}  // namespace
}  // namespace muster::rendezvous
