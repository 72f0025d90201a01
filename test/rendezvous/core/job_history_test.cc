// The recorded history of a job's rounds.
#include "rendezvous/core/job/job_history.h"

#include <string>

#include <gtest/gtest.h>
#include "rendezvous/core/values/limits.h"

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;

std::vector<Placement> Members(int nodes, int slots) {
  std::vector<Placement> members;
  for (int i = 0; i < nodes; ++i) {
    members.push_back({.node = NodeInfo{.slots = slots}, .group_rank = i});
  }
  return members;
}

TEST(JobHistoryTest, RoundsHaveTheirTimesAndTheReasonOfTheirEnd) {
  const TimePoint start{seconds(100)};
  JobHistory history(0, start);
  const RoundStarted first = history.Start(Members(2, 4), start + seconds(3));
  EXPECT_EQ(first.gathered, seconds(3));
  EXPECT_FALSE(first.is_restart);
  EXPECT_EQ(history.Run(start + seconds(4)).recovered, std::nullopt);
  const RoundOver over =
      history.End(RoundEnd::kNodeLost, "node b was lost", 1, seconds(2), start + seconds(10));
  EXPECT_EQ(over.ran, seconds(7));
  EXPECT_EQ(over.detected, seconds(2));
  const RoundStarted second = history.Start(Members(1, 4), start + seconds(12));
  EXPECT_EQ(second.gathered, seconds(2));
  EXPECT_TRUE(second.is_restart);
  EXPECT_EQ(history.Describe(start + seconds(20)).productive, seconds(4))
      << "from when all workers had started until it failed; those of round 1 have not started yet";
  EXPECT_EQ(history.Run(start + seconds(20)).recovered, seconds(10));

  EXPECT_EQ(history.Describe(start + seconds(20)).age, seconds(20));
  const auto rounds = history.Describe(start + seconds(20)).rounds;
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

TEST(JobHistoryTest, FirstRankThatFailedIsTheOneThatIsNamed) {
  JobHistory history(0, TimePoint{});
  history.Fail(-1);
  history.Fail(3);
  history.Fail(5);
  history.End(RoundEnd::kWorkerFailed, "rank 3 failed", 1, {}, TimePoint{seconds(1)});
  const auto rounds = history.Describe(TimePoint{seconds(2)}).rounds;
  EXPECT_EQ(rounds[0].failed_rank, 3);
  EXPECT_EQ(rounds[1].failed_rank, std::nullopt);
}

// With 64 jobs whose nodes sent long reasons, the list of jobs was 17 MB, and each page view
// stalled the daemon so long that leases were at risk.
TEST(JobHistoryTest, OfALongReasonTheBeginningIsKept) {
  JobHistory history(0, TimePoint{});
  std::string reason = "x";
  while (reason.size() < 8000) reason += "\u00e4";
  history.End(RoundEnd::kWorkerFailed, reason, 1, {}, TimePoint{});
  const std::string kept = history.Describe(TimePoint{}).rounds[0].reason;
  EXPECT_LE(kept.size(), limits::kRoundReasonBytes.most);
  EXPECT_GT(kept.size(), limits::kRoundReasonBytes.most - 4);
  EXPECT_TRUE(kept.ends_with("\u00e4...")) << kept;
}

TEST(JobHistoryTest, RoundThatNeverRanCostsNoRunningTime) {
  JobHistory history(4, TimePoint{});
  EXPECT_EQ(history.End(RoundEnd::kNodeLeaving, "", 5, {}, TimePoint{seconds(1)}).ran,
            std::nullopt);
  const auto rounds = history.Describe(TimePoint{seconds(2)}).rounds;
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(rounds[0].number, 4);
  EXPECT_EQ(rounds[0].gathered, std::nullopt);
  EXPECT_FALSE(history.Start(Members(1, 1), TimePoint{seconds(3)}).is_restart);
}

TEST(JobHistoryTest, TimeOfAJobThatHasEndedStandsStill) {
  JobHistory history(0, TimePoint{});
  history.Start(Members(1, 1), TimePoint{seconds(1)});
  history.Finish(std::nullopt, TimePoint{seconds(5)});
  const HistorySnapshot told = history.Describe(TimePoint{seconds(9)});
  EXPECT_EQ(told.age, seconds(5));
  EXPECT_EQ(told.ended_ago, seconds(4));
  EXPECT_EQ(told.rounds.at(0).ran, seconds(4));
  EXPECT_EQ(told.rounds.at(0).opened_ago, seconds(9));
}

// A restarted daemon showed nothing of what had happened before.
TEST(JobHistoryTest, DaemonThatWasStartedAgainGoesOnWithIt) {
  JobHistory history(0, TimePoint{});
  history.Start(Members(2, 4), TimePoint{seconds(1)});
  history.End(RoundEnd::kNodeLost, "node b was lost", 1, {}, TimePoint{seconds(3)});
  history.Start(Members(1, 4), TimePoint{seconds(4)});
  const HistorySnapshot before = history.Describe(TimePoint{seconds(6)});

  // Its clock is a different one.
  JobHistory after(before, 1, TimePoint{seconds(1000)});
  EXPECT_EQ(after.Describe(TimePoint{seconds(1000)}), before);
  EXPECT_TRUE(after.started());
  EXPECT_TRUE(after.End(RoundEnd::kNodeLost, "", 2, {}, TimePoint{seconds(1001)}).ran ==
              seconds(3));
  EXPECT_TRUE(after.Start(Members(1, 4), TimePoint{seconds(1002)}).is_restart);
  EXPECT_EQ(after.Describe(TimePoint{seconds(1002)}).age, seconds(8));
}

TEST(JobHistoryTest, HistoryOfAnotherRoundIsNotTaken) {
  JobHistory history({.age = seconds(9), .ended_ago = {}, .rounds = {{.number = 3}}}, 4,
                     TimePoint{});
  const HistorySnapshot told = history.Describe(TimePoint{seconds(1)});
  ASSERT_EQ(told.rounds.size(), 1u);
  EXPECT_EQ(told.rounds[0].number, 4);
  EXPECT_EQ(told.age, seconds(10));
}

TEST(JobHistoryTest, NoTimePassesOnceTheJobHasAVerdict) {
  JobHistory history(0, TimePoint{});
  history.Start(Members(1, 1), TimePoint{seconds(2)});
  history.Run(TimePoint{seconds(3)});
  history.Finish(seconds(1), TimePoint{seconds(10)});
  EXPECT_EQ(history.Describe(TimePoint{seconds(90)}).age, seconds(10));
  EXPECT_EQ(history.Describe(TimePoint{seconds(90)}).productive, seconds(6));
  EXPECT_EQ(history.Describe(TimePoint{seconds(90)}).rounds[0].ran, seconds(8));
}

// A worker may fail before the last of the others has started.
TEST(JobHistoryTest, RoundThatFailedBeforeItRanInFullWasNotProductive) {
  JobHistory history(0, TimePoint{});
  history.Start(Members(1, 1), TimePoint{seconds(2)});
  history.Run(TimePoint{seconds(3)});
  history.End(RoundEnd::kWorkerFailed, "", 1, seconds(5), TimePoint{seconds(4)});
  EXPECT_EQ(history.Describe(TimePoint{seconds(9)}).productive, seconds(0));
}

TEST(JobHistoryTest, OnlyTheLastRoundsAreKept) {
  JobHistory history(0, TimePoint{});
  for (int round = 1; round <= 200; ++round) {
    history.End(RoundEnd::kNodeJoined, "", round, {}, TimePoint{seconds(round)});
  }
  const auto rounds = history.Describe(TimePoint{seconds(300)}).rounds;
  ASSERT_EQ(rounds.size(), JobHistory::kMost);
  EXPECT_EQ(rounds.back().number, 200);
}

}  // namespace
}  // namespace muster::rendezvous
