// How long each restart took: what the user is told at the end of a run.
#include "launcher/views/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using enum AgentEventKind;

class RestartTimelineTest : public ::testing::Test {
 protected:
  void At(int tenths_of_ms, const AgentEvent& event) {
    timeline_.On(event, RestartTimeline::Time(std::chrono::microseconds(100 * tenths_of_ms)));
  }

  RestartTimeline timeline_;
};

TEST_F(RestartTimelineTest, FailureOnThisNode) {
  At(0, {.kind = kJoining});
  At(10, {.kind = kWorkersStarted, .round = 0});
  At(1000, {.kind = kWorkerFailed, .round = 0, .rank = 1, .cause = "exited with code 1"});
  At(1004, {.kind = kToldToStop, .round = 0, .cause = "rank 1 exited with code 1"});
  At(1021, {.kind = kWorkersGone, .round = 0, .cause = "failed"});
  At(1022, {.kind = kJoining});
  At(1098, {.kind = kWorkersStarted, .round = 1});
  EXPECT_THAT(
      timeline_.Lines(),
      ElementsAre("round 0 ended: rank 1 exited with code 1; the workers of round 1 ran 9.8 ms "
                  "later (told 0.4 ms, stopped 2.1 ms, rejoined 2.2 ms)"));
}

TEST_F(RestartTimelineTest, FirstBeatOfTheNextRoundIsTheLastStep) {
  At(0, {.kind = kFirstBeat, .round = 0, .rank = 0});
  At(10, {.kind = kToldToStop, .round = 0, .cause = "node b joined"});
  At(20, {.kind = kWorkersGone, .round = 0});
  At(30, {.kind = kJoining});
  At(40, {.kind = kWorkersStarted, .round = 1});
  At(60, {.kind = kFirstBeat, .round = 1, .rank = 1});
  At(70, {.kind = kFirstBeat, .round = 1, .rank = 0});
  EXPECT_THAT(
      timeline_.Lines(),
      ElementsAre("round 0 ended: node b joined; the workers of round 1 ran 3 ms later (told "
                  "0 ms, stopped 1 ms, rejoined 2 ms, first beat 5 ms)"));
}

TEST_F(RestartTimelineTest, FailureElsewhereIsDetectedWhenItIsTold) {
  At(0, {.kind = kToldToStop, .round = 3, .cause = "node b joined"});
  At(10, {.kind = kWorkersGone, .round = 3});
  At(20, {.kind = kJoining});
  At(30, {.kind = kWorkersStarted, .round = 4});
  EXPECT_THAT(
      timeline_.Lines(),
      ElementsAre("round 3 ended: node b joined; the workers of round 4 ran 3 ms later (told "
                  "0 ms, stopped 1 ms, rejoined 2 ms)"));
}

TEST_F(RestartTimelineTest, EndOfTheRunIsNoRestart) {
  At(0, {.kind = kWorkersStarted, .round = 0});
  At(10, {.kind = kWorkerFailed, .round = 0, .rank = 0, .cause = "exited with code 1"});
  At(20, {.kind = kVerdict, .round = 0, .cause = "failed"});
  At(30, {.kind = kWorkersGone, .round = 0});
  EXPECT_TRUE(timeline_.Lines().empty());
}

// "After a night of restarts the report was 6,000 lines, and what had failed was somewhere above."
TEST_F(RestartTimelineTest, OfThousandsTheFirstAndTheLastAreTold) {
  for (int round = 0; round < 3000; ++round) {
    const int at = 1000 * round;
    At(at, {.kind = kWorkerFailed, .round = round, .rank = 0, .cause = "exited with code 1"});
    At(at + 30, {.kind = kWorkersStarted, .round = round + 1});
    At(at + 40, {.kind = kFirstBeat, .round = round + 1, .rank = 0});
  }
  const std::vector<std::string> lines = timeline_.Lines();
  ASSERT_EQ(lines.size(), 21u);
  EXPECT_EQ(lines[0],
            "round 0 ended: rank 0 exited with code 1; the workers of round 1 ran 3 ms later "
            "(first beat 4 ms)");
  EXPECT_THAT(lines[9], testing::StartsWith("round 9 ended: "));
  EXPECT_EQ(lines[10], "... 2980 more restarts ...");
  EXPECT_THAT(lines[11], testing::StartsWith("round 2990 ended: "));
  EXPECT_EQ(lines[20],
            "round 2999 ended: rank 0 exited with code 1; the workers of round 3000 ran 3 ms "
            "later (first beat 4 ms)");
}

TEST_F(RestartTimelineTest, TwentyAreAllTold) {
  for (int round = 0; round < 20; ++round) {
    At(1000 * round, {.kind = kToldToStop, .round = round, .cause = "node b joined"});
    At(1000 * round + 30, {.kind = kWorkersStarted, .round = round + 1});
  }
  const std::vector<std::string> lines = timeline_.Lines();
  ASSERT_EQ(lines.size(), 20u);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_THAT(lines[i], testing::StartsWith("round " + std::to_string(i) + " ended: "));
  }
}

}  // namespace
}  // namespace muster::launcher
