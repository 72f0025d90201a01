// Timelines of real runs as text, and situations that no run here produces: clocks that differ,
// logs that are missing.
#include "launcher/replay/timeline.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/replay/views.h"
#include "test/launcher/replay/logs.h"

namespace muster::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::AgentLog;
using test::TimelineOf;
using test::TimelineOfTexts;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using enum AgentEventKind;

// With MUSTER_REWRITE=1 the test prints the actual text.
void ExpectText(const std::string& golden, const Timeline& timeline) {
  const std::string text = TextView(timeline);
  if (std::getenv("MUSTER_REWRITE") != nullptr) std::cout << "== " << golden << "\n" << text;
  EXPECT_EQ(text, test::LogText(golden)) << golden;
}

TEST(TimelineTest, TwoFailuresOnTwoNodes) {
  const Timeline timeline = TimelineOf({"two_failures_0.json", "two_failures_1.json"});
  ExpectText("two_failures.txt", timeline);
  EXPECT_THAT(timeline.notes, IsEmpty());
  ASSERT_EQ(timeline.rounds.size(), 3u);
  EXPECT_EQ(timeline.rounds[0].members.at(1).failed_rank, 3);
  EXPECT_EQ(timeline.rounds[1].members.at(0).failed_rank, 0);
}

TEST(TimelineTest, NodeThatWasKilled) {
  ExpectText("lost_node.txt",
             TimelineOf({"lost_node_0.json", "lost_node_1.json", "lost_node_2.json"}));
}

TEST(TimelineTest, RankThatHung) {
  const Timeline timeline = TimelineOf({"hang.json"});
  ExpectText("hang.txt", timeline);
  EXPECT_EQ(timeline.rounds.at(0).incidents.front().kind, kHang);
}

TEST(TimelineTest, LogOfANodeIsMissing) {
  const Timeline timeline = TimelineOf({"two_failures_1.json"});
  EXPECT_EQ(timeline.rounds.size(), 3u);
  EXPECT_THAT(
      timeline.notes,
      ElementsAre("the logs of some nodes are missing, and their ranks are not shown: round "
                  "0 (node rank 0), round 1 (node rank 0), round 2 (node rank 0)"));
}

// A round of two nodes with two workers each, ended by one node's failure, and the next one, which
// succeeds; as the node with that rank sees it.
AgentLog TwoRounds(int node_rank, milliseconds wall, milliseconds monotonic) {
  AgentLog log("n" + std::to_string(node_rank), 2, wall, monotonic);
  log.At(1, {.kind = kJoining}).Assigned(1000, 0, node_rank, 2, 4);
  log.At(1500, {.kind = kWorkersStarted, .round = 0});
  if (node_rank == 1) {
    log.At(4000, {.kind = kWorkerFailed, .round = 0, .rank = 3, .cause = "exited with code 1"});
  }
  log.At(4010, {.kind = kToldToStop, .round = 0, .cause = "rank 3 exited with code 1"});
  log.At(4100 + node_rank, {.kind = kWorkersGone, .round = 0, .cause = "stopped"});
  log.Assigned(4200, 1, node_rank, 2, 4).At(4500, {.kind = kWorkersStarted, .round = 1});
  log.At(9000, {.kind = kWorkersGone, .round = 1, .cause = "succeeded"});
  log.At(10000, {.kind = kVerdict, .round = 1, .cause = "the job succeeded"});
  return log;
}

TEST(TimelineTest, CostByPhaseAndGoodput) {
  const Timeline timeline = TimelineOfTexts({TwoRounds(0, AgentLog::kNoon, seconds(10)).text(),
                                             TwoRounds(1, AgentLog::kNoon, seconds(10)).text()});
  ASSERT_EQ(timeline.restarts.size(), 1u);
  const RestartCost& cost = timeline.restarts[0];
  EXPECT_EQ(cost.cause, "rank 3 exited with code 1");
  EXPECT_EQ(cost.detected, milliseconds(4000));
  EXPECT_EQ(cost.stopped, milliseconds(4101));
  EXPECT_EQ(cost.gathered, milliseconds(4200));
  EXPECT_EQ(cost.started, milliseconds(4500));
  EXPECT_EQ(cost.progress, std::nullopt);
  EXPECT_EQ(cost.Cost(), milliseconds(500));
  // Of 10 s: from 1.5 to 4 s and from 4.5 to 9 s.
  EXPECT_EQ(timeline.useful, milliseconds(7000));
  EXPECT_DOUBLE_EQ(timeline.Goodput(), 0.7);
  EXPECT_EQ(timeline.verdict, "the job succeeded");
}

TEST(TimelineTest, RoundWithoutABeatGotNoFurtherWhereWorkersBeat) {
  AgentLog log = TwoRounds(0, AgentLog::kNoon, seconds(10));
  log.At(10001, {.kind = kVerdict, .cause = "the job succeeded"});
  AgentLog other = TwoRounds(1, AgentLog::kNoon, seconds(10));
  other.At(5000, {.kind = kFirstBeat, .round = 1, .rank = 2});
  const Timeline timeline = TimelineOfTexts({log.text(), other.text()});
  EXPECT_FALSE(timeline.rounds.at(0).got_further);
  EXPECT_TRUE(timeline.rounds.at(1).got_further);
  EXPECT_EQ(timeline.useful, milliseconds(4500));
  EXPECT_EQ(timeline.restarts.at(0).progress, milliseconds(5000));
}

// "The node that failed seemed to fail an hour after the others had been told to stop."
TEST(TimelineTest, ClocksThatDifferAreBroughtIntoLineByTheRoundsInCommon) {
  const Timeline timeline = TimelineOfTexts(
      {TwoRounds(0, AgentLog::kNoon, seconds(10)).text(),
       TwoRounds(1, AgentLog::kNoon + std::chrono::hours(1), seconds(77'000)).text()});
  EXPECT_THAT(timeline.notes,
              ElementsAre("the clocks of nodes differ; these were shifted to that of n0, by the "
                          "beginnings and ends of rounds in common: n1 by -3600.000 s (from 3 "
                          "moments)"));
  EXPECT_EQ(timeline.restarts.at(0).detected, milliseconds(4000));
  EXPECT_EQ(timeline.restarts.at(0).Cost(), milliseconds(500));
  EXPECT_EQ(timeline.length, seconds(10));
}

TEST(TimelineTest, ClocksThatDifferByLessThanAMessageTakesStayAsTheyAre) {
  const Timeline timeline =
      TimelineOfTexts({TwoRounds(0, AgentLog::kNoon, seconds(10)).text(),
                       TwoRounds(1, AgentLog::kNoon + milliseconds(4), seconds(10)).text()});
  EXPECT_THAT(timeline.notes, IsEmpty());
  EXPECT_EQ(timeline.nodes.at(1).first, milliseconds(4));
}

// "Two agents on one machine were said to have clocks 7 ms apart."
TEST(TimelineTest, NodesOfOneMachineHaveOneClock) {
  AgentLog late("n1", 2, AgentLog::kNoon + milliseconds(1), seconds(10));
  late.Assigned(1060, 0, 1, 2, 4).At(4080, {.kind = kToldToStop, .round = 0, .cause = "x"});
  const Timeline timeline =
      TimelineOfTexts({TwoRounds(0, AgentLog::kNoon, seconds(10)).text(), late.text()});
  EXPECT_EQ(timeline.nodes.at(1).clock.moved, seconds(0));
  EXPECT_EQ(timeline.nodes.at(1).first, seconds(0));
}

TEST(TimelineTest, NodeWithoutARoundInCommonKeepsItsOwnClock) {
  AgentLog spare("spare", 2, AgentLog::kNoon + seconds(2), seconds(5));
  spare.At(1, {.kind = kJoining});
  const Timeline timeline =
      TimelineOfTexts({TwoRounds(0, AgentLog::kNoon, seconds(10)).text(),
                       TwoRounds(1, AgentLog::kNoon, seconds(10)).text(), spare.text()});
  EXPECT_THAT(
      timeline.notes,
      ElementsAre(
          "these nodes share no round with the others, so their own clocks are used: spare"));
  EXPECT_EQ(timeline.nodes.at(2).first, seconds(2));
}

// A node that shares no round with the reference is aligned through one that does.
TEST(TimelineTest, ClocksAreAlignedAcrossNodesThatTakeTurns) {
  AgentLog first("n0", 1, AgentLog::kNoon, seconds(10));
  first.Assigned(1000, 0, 0, 2, 2).At(2000, {.kind = kToldToStop, .round = 0, .cause = "x"});
  first.Assigned(2500, 1, 0, 2, 2).At(2600, {.kind = kToldToStop, .round = 1, .cause = "x"});
  AgentLog middle("n1", 1, AgentLog::kNoon + seconds(50), seconds(90));
  middle.Assigned(1000, 0, 1, 2, 2).At(2000, {.kind = kToldToStop, .round = 0, .cause = "x"});
  middle.Assigned(3000, 2, 0, 2, 2);
  AgentLog last("n2", 1, AgentLog::kNoon + seconds(700), seconds(4));
  last.Assigned(3000, 2, 1, 2, 2);
  const Timeline timeline = TimelineOfTexts({first.text(), middle.text(), last.text()});
  EXPECT_EQ(timeline.nodes.at(1).clock.moved, -seconds(50));
  EXPECT_EQ(timeline.nodes.at(2).clock.moved, -seconds(700));
  EXPECT_EQ(timeline.length, seconds(3));
}

TEST(TimelineTest, ClockThatWasSetMovesNothingAndIsTold) {
  AgentLog log("n0", 1);
  log.Assigned(1000, 0, 0, 1, 1).At(1100, {.kind = kWorkersStarted, .round = 0});
  AgentLog later("n0", 1, AgentLog::kNoon + seconds(30));
  later.At(2000, {.kind = kWorkersGone, .round = 0, .cause = "succeeded"});
  const std::string end = later.text().substr(later.text().find('\n') + 1);
  const Timeline timeline = TimelineOfTexts({log.text() + end});
  EXPECT_EQ(timeline.length, seconds(2));
  EXPECT_THAT(timeline.notes, ElementsAre("these clocks were set while the job ran, which does not "
                                          "affect this timeline: n0 by +30.000 s"));
}

// Absurd numbers must not exhaust memory or overflow.
TEST(TimelineTest, LogWithAbsurdNumbersIsShown) {
  AgentLog log("n0", 2147483647, milliseconds(0), milliseconds(999'999'999'000));
  log.At(1, {.kind = kAssigned,
             .round = 2147483647,
             .place = EventPlace{.node_rank = 2147483647,
                                 .nodes = 2147483647,
                                 .first_rank = 0,
                                 .world_size = 2147483647}});
  const Timeline timeline = TimelineOfTexts({log.text()});
  EXPECT_EQ(timeline.rounds.at(0).number, 2147483647);
  EXPECT_THAT(TextView(timeline), HasSubstr("and 2147483638 more"));
}

// "After thousands of restarts replay printed 6,000 lines."
TEST(TextViewTest, OfThousandsOfRoundsTheFirstAndTheLastAreShown) {
  AgentLog log("n0", 1);
  for (int round = 0; round < 300; ++round) {
    const int at = 10 * round;
    log.Assigned(at + 1, round, 0, 1, 1).At(at + 2, {.kind = kWorkersStarted, .round = round});
    log.At(at + 5,
           {.kind = kWorkerFailed, .round = round, .rank = 0, .cause = "exited with code 1"});
    log.At(at + 6, {.kind = kWorkersGone, .round = round, .cause = "failed"});
  }
  const std::string text = TextView(TimelineOfTexts({log.text()}));
  EXPECT_THAT(text, HasSubstr("\n9      1      1"));
  EXPECT_THAT(text, HasSubstr("\n...    ...    ..."));
  EXPECT_THAT(text, HasSubstr("\n290    1      1"));
  EXPECT_THAT(text, HasSubstr("and 280 more between them; --html shows all\n"));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 60);
}

// A job stood still for a while because someone had stopped a rank, and the text did not say so.
TEST(TextViewTest, RankThatWasStoppedForAWhileIsToldOf) {
  AgentLog log("n0", 1);
  log.Assigned(1, 0, 0, 1, 1).At(2, {.kind = kWorkersStarted, .round = 0});
  log.At(
      3,
      {.kind = kWorkerStopped, .round = 0, .rank = 0, .pid = 7, .cause = "was stopped by SIGSTOP"});
  log.At(8, {.kind = kWorkerContinued, .round = 0, .rank = 0, .pid = 7});
  log.At(9, {.kind = kWorkersGone, .round = 0, .cause = "succeeded"});
  const std::string text = TextView(TimelineOfTexts({log.text()}));
  EXPECT_THAT(text, HasSubstr("MOMENT   TIMES  WHAT ELSE HAPPENED\n"
                              "0.003 s  1      rank 0 was stopped by SIGSTOP\n"
                              "0.008 s  1      rank 0 was continued\n"));
}

// The terminal said that a rank slowed the others down, but that could not be looked up later.
TEST(TextViewTest, StragglersAndLostOutputAreToldOf) {
  AgentLog log("n0", 1);
  log.Assigned(1, 0, 0, 1, 1).At(2, {.kind = kWorkersStarted, .round = 0});
  log.At(3,
         {.kind = kStraggler, .round = 0, .rank = 5, .cause = "rank 5 on host b is a straggler"});
  log.At(4, {.kind = kOutputLost,
             .round = 0,
             .rank = 0,
             .cause = "has lost output: No space left on device (write /logs/0)"});
  log.At(5, {.kind = kStraggler, .round = 0, .cause = "9 more have become stragglers"});
  log.At(8, {.kind = kStragglerOver, .round = 0, .rank = 5, .cause = "rank 5 no longer is one"});
  log.At(9, {.kind = kWorkersGone, .round = 0, .cause = "succeeded"});
  const Timeline timeline = TimelineOfTexts({log.text()});
  EXPECT_THAT(TextView(timeline),
              HasSubstr("0.003 s  1      rank 5 on host b is a straggler\n"
                        "0.004 s  1      rank 0 has lost output: No space left on device (write "
                        "/logs/0)\n"
                        "0.005 s  1      9 more have become stragglers\n"
                        "0.008 s  1      rank 5 no longer is one\n"));
  EXPECT_EQ(timeline.rounds.at(0).cause, "succeeded") << "neither ends a round";
}

// "A rank whose log file was named txt.exe was shown as exe.txt."
TEST(TextViewTest, WordsOfAWorkerDoNotTurnTheLineAround) {
  AgentLog log("n0", 1);
  log.Assigned(1, 0, 0, 1, 1).At(2, {.kind = kWorkersStarted, .round = 0});
  log.At(
      4,
      {.kind = kVerdict, .round = 0, .cause = "a\u202eb\u2066c\u200ed\u061ce\u2028f\u2026g\u05d0"});
  EXPECT_THAT(TextView(TimelineOfTexts({log.text()})), HasSubstr("\na?b?c?d?e?f\u2026g\u05d0\n"));
}

TEST(TextViewTest, WordsOfAWorkerDoNotDriveTheTerminal) {
  AgentLog log("n0", 1);
  log.Assigned(1, 0, 0, 1, 1).At(2, {.kind = kWorkersStarted, .round = 0});
  log.At(3, {.kind = kWorkerFailed,
             .round = 0,
             .rank = 0,
             .cause = "\x1b[2J\r\xc2\x9b"
                      "31m"});
  log.At(4, {.kind = kVerdict, .round = 0, .cause = "failed: \x1b]0;x\x07"});
  const std::string text = TextView(TimelineOfTexts({log.text()}));
  EXPECT_THAT(text, HasSubstr("failed: ?]0;x?"));
  EXPECT_THAT(text, Each(Not(testing::AnyOf('\x1b', '\r', '\x07'))));
  EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
}

}  // namespace
}  // namespace muster::launcher
