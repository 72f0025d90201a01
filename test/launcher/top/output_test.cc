// What the chosen rank prints, in `muster top`: which reading is wanted when, and what is on the
// screen of it.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "launcher/top/view.h"
#include "test/launcher/top/jobs.h"

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;
using rendezvous::JobState;
using rendezvous::LogRound;
using rendezvous::LogStream;
using rendezvous::LogText;
using rendezvous::TimePoint;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = Key::Kind;

constexpr TimePoint kNow{seconds(1000)};
constexpr ScreenSize kTerminal{.columns = 80, .rows = 24};
constexpr Key kOutput{Kind::kCharacter, 'o'};
// The first row of the pane, behind its headings.
constexpr std::size_t kFirst = 10;

class OutputTest : public ::testing::Test {
 protected:
  OutputTest() { Jobs({RestartedJob()}); }

  void Jobs(const std::vector<JobSnapshot>& jobs) { OnJobs(state_, {.jobs = jobs}, kNow); }
  void Press(const std::vector<Key>& keys, const ScreenSize& size = kTerminal) {
    for (const Key& key : keys) EXPECT_FALSE(PressKey(state_, key, size));
  }
  void Print(const std::string& bytes, LogStream stream = LogStream::kStdout) {
    OnLog(state_, state_.readings, LogText{.stream = stream, .bytes = bytes});
  }
  void PrintLines(int first, int last) {
    for (int i = first; i <= last; ++i) Print(absl::StrCat("line ", i, "\n"));
  }
  std::vector<std::string> Seen(const ScreenSize& size = kTerminal) const {
    return Rows(DrawTop(state_, size, kNow));
  }

  TopState state_ = BeginTop("10.0.0.1:29400", "big");
};

TEST_F(OutputTest, KeyOpensItAndClosesIt) {
  EXPECT_FALSE(state_.log.has_value());
  EXPECT_THAT(Seen()[23], HasSubstr("o output"));
  Press({{Kind::kDown}, {Kind::kRight}, kOutput});
  ASSERT_TRUE(state_.log.has_value());
  EXPECT_EQ(state_.log->run_id, "big");
  EXPECT_EQ(state_.log->rank, 5);
  auto rows = Seen();
  EXPECT_EQ(rows[8], " ROUNDS   NODES   STEPS  [OUTPUT]");
  EXPECT_EQ(rows[9], "OF RANK 5   2> stderr   -- from Muster");
  EXPECT_EQ(rows[kFirst], "waiting for what rank 5 prints");
  EXPECT_THAT(rows[23], HasSubstr("o close"));
  OnLog(state_, state_.readings, LogRound{.round = 1});
  Print("step 1\n");
  Print("warning: slow disk\n", LogStream::kStderr);
  Print(std::string(70, 'x') + std::string(30, 'y') + "\n");
  rows = Seen();
  EXPECT_EQ(rows[kFirst], "-- round 1");
  EXPECT_EQ(rows[kFirst + 1], "   step 1");
  EXPECT_EQ(rows[kFirst + 2], "2> warning: slow disk");
  EXPECT_EQ(rows[kFirst + 3], "   " + std::string(70, 'x') + std::string(7, 'y'));
  EXPECT_EQ(rows[kFirst + 4], "   " + std::string(23, 'y'));
  Press({kOutput});
  EXPECT_FALSE(state_.log.has_value()) << "nobody reads it";
  EXPECT_THAT(Seen()[8], StartsWith("[ROUNDS]"));
}

TEST_F(OutputTest, AnotherRankIsAnotherReadingAndWhatComesOfTheFormerIsDropped) {
  Press({kOutput});
  const int first = state_.readings;
  Print("of rank 0\n");
  Press({{Kind::kRight}});
  EXPECT_GT(state_.readings, first);
  EXPECT_EQ(state_.log->rank, 1);
  OnLog(state_, first, LogText{.bytes = "of rank 0\n"});
  OnLogOver(state_, first, absl::OkStatus());
  EXPECT_EQ(Seen()[kFirst], "waiting for what rank 1 prints");
  // The edge of the grid: it stays the same rank, and what was read of it.
  Press({{Kind::kEnd}});
  Print("of rank 7\n");
  const int last = state_.readings;
  Press({{Kind::kRight}, {Kind::kDown}});
  EXPECT_EQ(state_.readings, last);
  EXPECT_EQ(Seen()[kFirst], "   of rank 7");
  Press({{Kind::kEscape}});
  EXPECT_FALSE(state_.log.has_value()) << "in the list of all jobs nobody is chosen";
}

TEST_F(OutputTest, ItIsFollowedUntilOneScrolls) {
  Press({kOutput});
  PrintLines(1, 100);
  auto rows = Seen();
  EXPECT_THAT(rows[8], HasSubstr("[OUTPUT] rows 88 to 100 of 100"));
  EXPECT_EQ(rows[22], "   line 100");
  Press({{Kind::kPageUp}});
  rows = Seen();
  EXPECT_THAT(rows[8], HasSubstr("rows 75 to 87 of 100, f: the last ones"));
  EXPECT_EQ(rows[kFirst], "   line 75");
  PrintLines(101, 150);
  EXPECT_EQ(Seen()[kFirst], "   line 75") << "it stays where it is";
  Press({{Kind::kCharacter, 'f'}});
  EXPECT_EQ(Seen()[22], "   line 150");
  for (int i = 0; i < 100; ++i) Press({{Kind::kPageUp}});
  EXPECT_EQ(Seen()[kFirst], "   line 1");
  // What it stands on is dropped at last.
  PrintLines(151, 1200);
  EXPECT_EQ(Seen()[kFirst], "   line 201");
  for (int i = 0; i < 100; ++i) Press({{Kind::kPageDown}});
  PrintLines(1201, 1201);
  EXPECT_EQ(Seen()[22], "   line 1201") << "at the end it is followed again";
  EXPECT_THAT(Seen()[8], Not(HasSubstr("f: the last ones")));
}

TEST_F(OutputTest, EnterGivesItAllOfTheScreen) {
  Press({kOutput, {Kind::kEnter}});
  PrintLines(1, 100);
  auto rows = Seen();
  EXPECT_THAT(rows[1], StartsWith("> rank 0 on node0"));
  EXPECT_EQ(rows[3], "OF RANK 0   2> stderr   -- from Muster   rows 82 to 100 of 100");
  EXPECT_EQ(rows[4], "   line 82");
  EXPECT_EQ(rows[22], "   line 100");
  Press({{Kind::kPageUp}});
  EXPECT_EQ(Seen()[4], "   line 63");
  Press({{Kind::kRight}});
  EXPECT_EQ(state_.log->rank, 1);
  Press({kOutput});
  EXPECT_THAT(Seen(), Contains("RANK          rank 1"));
  Press({kOutput, {Kind::kEscape}});
  EXPECT_THAT(Seen()[8], HasSubstr("[OUTPUT]"));
}

TEST_F(OutputTest, RoundBeforeIsAKeyAway) {
  Press({kOutput});
  Print("goes on\n");
  EXPECT_THAT(Seen()[23], HasSubstr("p round before"));
  Press({{Kind::kCharacter, 'p'}});
  EXPECT_TRUE(state_.log->of_round_before);
  Print("KeyError: 'fc7'\n", LogStream::kStderr);
  OnLogOver(state_, state_.readings, absl::OkStatus());
  const auto rows = Seen();
  EXPECT_THAT(rows[9], StartsWith("OF RANK 0, THE ROUND BEFORE   2> stderr"));
  EXPECT_EQ(rows[kFirst], "2> KeyError: 'fc7'");
  EXPECT_EQ(rows[kFirst + 1], "-- end of what rank 0 printed in the round before");
  EXPECT_THAT(rows[23], HasSubstr("p this round"));
  Press({{Kind::kCharacter, 'p'}});
  EXPECT_FALSE(state_.log->of_round_before);
}

// While the nodes of the next round gather nobody has a rank.
TEST_F(OutputTest, ItGoesOnThroughARestart) {
  Press({kOutput});
  const int reading = state_.readings;
  Print("attempt 0\n");
  JobSnapshot job = RestartedJob();
  job.state = JobState::kGathering;
  job.round = 2;
  for (auto& node : job.nodes) node.group_rank = -1;
  Jobs({job});
  EXPECT_EQ(state_.readings, reading);
  EXPECT_EQ(Seen()[kFirst], "   attempt 0");
  job = RestartedJob();
  job.round = 2;
  Jobs({job});
  EXPECT_EQ(state_.readings, reading) << "that the round has begun is told by the same reading";
}

TEST_F(OutputTest, JobWithoutARankThatCouldPrintHasNoneToBeRead) {
  JobSnapshot job{.run_id = "big", .settings = {.min_nodes = 1, .max_nodes = 1}};
  Jobs({job});
  Press({kOutput});
  EXPECT_FALSE(state_.log.has_value());
  EXPECT_THAT(Seen(), Contains("no round has started: its rank is not known yet"));
  Jobs({RestartedJob()});
  ASSERT_TRUE(state_.log.has_value());
  EXPECT_EQ(state_.log->rank, 0);
}

TEST_F(OutputTest, WhatCouldNotBeReadIsAskedForAgainWhenItMayBeThere) {
  Press({kOutput});
  int reading = state_.readings;
  OnLogOver(state_, reading, absl::ResourceExhaustedError("a:1: 64 readers are there already"));
  EXPECT_EQ(Seen()[kFirst], "-- a:1: 64 readers are there already");
  Jobs({RestartedJob()});
  EXPECT_EQ(state_.readings, reading) << "nothing has changed";
  JobSnapshot job = RestartedJob();
  job.round = 2;
  Jobs({job});
  EXPECT_GT(state_.readings, reading);
  // The daemon was started again.
  reading = state_.readings;
  OnLogOver(state_, reading, absl::UnavailableError("a:1: the daemon stopped"));
  EXPECT_EQ(Seen()[kFirst], "-- a:1: the daemon stopped");
  Jobs({job});
  EXPECT_GT(state_.readings, reading);
}

// It is the reading that comes back, and knows where it was.
TEST_F(OutputTest, DaemonThatIsStartedAgainIsAskedForTheRest) {
  Press({kOutput});
  Print("before\n");
  const int reading = state_.readings;
  OnLogAway(state_, reading - 1, "of a former reading");
  OnLogAway(state_, reading, "a:1: the daemon stopped");
  Jobs({RestartedJob()});
  EXPECT_EQ(state_.readings, reading);
  Print("after\n");
  EXPECT_EQ(Seen()[kFirst], "   before");
  EXPECT_EQ(Seen()[kFirst + 1], "-- a:1: the daemon stopped; it goes on here");
  EXPECT_EQ(Seen()[kFirst + 2], "   after");
}

TEST_F(OutputTest, JobThatBeginsAnewIsReadAnewAndSoIsTheRoundBefore) {
  Press({kOutput});
  OnLogOver(state_, state_.readings, absl::OkStatus());
  Jobs({{.run_id = "big", .state = JobState::kEnded}});
  int reading = state_.readings;
  Jobs({RestartedJob()});
  EXPECT_GT(state_.readings, reading) << "another job of that name";
  Press({{Kind::kCharacter, 'p'}});
  OnLogOver(state_, state_.readings, absl::OkStatus());
  reading = state_.readings;
  Jobs({RestartedJob()});
  EXPECT_EQ(state_.readings, reading);
  JobSnapshot job = RestartedJob();
  job.round = 2;
  Jobs({job});
  EXPECT_GT(state_.readings, reading) << "the round before is another one now";
}

TEST_F(OutputTest, WhatWasReadStaysWhenTheJobEnds) {
  Press({kOutput});
  Print("done\n");
  OnLogOver(state_, state_.readings, absl::OkStatus());
  const int reading = state_.readings;
  OnJobs(state_, {.ended = {{.run_id = "big", .sentence = "job 'big' succeeded"}}}, kNow);
  EXPECT_EQ(state_.readings, reading);
  EXPECT_EQ(Seen()[kFirst], "   done");
  EXPECT_EQ(Seen()[kFirst + 1], "-- the job has ended; rank 0 prints nothing more");
  // As the daemon tells of it once all have left.
  Jobs({{.run_id = "big", .state = JobState::kEnded}});
  EXPECT_EQ(state_.readings, reading);
  EXPECT_THAT(Seen(), Contains("   done"));
}

}  // namespace
}  // namespace muster::launcher
