// What `muster top` keeps of what a rank prints, and how it is made fit for a screen.
#include "launcher/top/rank_log.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

using rendezvous::LogNotice;
using rendezvous::LogRound;
using rendezvous::LogStream;
using rendezvous::LogText;
using Source = LogLine::Source;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void Print(RankLog& log, const std::string& bytes, LogStream stream = LogStream::kStdout) {
  OnLogPart(log, LogText{.rank = log.rank, .stream = stream, .bytes = bytes});
}

TEST(RankLogTest, LinesAreThoseOfEachStreamHoweverTheyAreCut) {
  RankLog log;
  OnLogPart(log, LogRound{.round = 0});
  Print(log, "step 1\nst");
  Print(log, "Traceback", LogStream::kStderr);
  Print(log, "ep 2\r\nloss");
  EXPECT_THAT(LinesOf(log),
              ElementsAre(LogLine{Source::kMuster, "round 0"}, LogLine{Source::kStdout, "step 1"},
                          LogLine{Source::kStdout, "step 2"}, LogLine{Source::kStdout, "loss"},
                          LogLine{Source::kStderr, "Traceback"}));
  Print(log, ": 0.5\n");
  OnLogPart(log, LogNotice{.sentence = "12 bytes are gone", .is_loss = true});
  OnLogPart(log, LogRound{.round = 1, .reason = "rank 0 exited with code 1"});
  EXPECT_EQ(LinesOf(log)[3], (LogLine{Source::kStdout, "loss: 0.5"}));
  EXPECT_EQ(LinesOf(log)[4], (LogLine{Source::kMuster, "12 bytes are gone"}));
  EXPECT_EQ(LinesOf(log)[5], (LogLine{Source::kStderr, "Traceback"})) << "it will not be ended";
  EXPECT_EQ(LinesOf(log)[6],
            (LogLine{Source::kMuster, "round 1 begins: rank 0 exited with code 1"}));
}

TEST(RankLogTest, ProgressBarIsOneLineAsOnATerminal) {
  RankLog log;
  Print(log, "10 %\r20 %", LogStream::kStderr);
  EXPECT_THAT(LinesOf(log), ElementsAre(LogLine{Source::kStderr, "20 %"}));
  Print(log, "\r", LogStream::kStderr);
  EXPECT_THAT(LinesOf(log), ElementsAre(LogLine{Source::kStderr, "20 %"}));
  Print(log, "30 %\nnext\n", LogStream::kStderr);
  EXPECT_THAT(LinesOf(log),
              ElementsAre(LogLine{Source::kStderr, "30 %"}, LogLine{Source::kStderr, "next"}));
}

TEST(RankLogTest, LastLinesAreKeptAndNoMore) {
  RankLog log;
  for (int i = 0; i < 2500; ++i) Print(log, absl::StrCat("line ", i, "\n"));
  EXPECT_THAT(log.lines, SizeIs(RankLog::kMostLines));
  EXPECT_EQ(log.gone, 1500);
  EXPECT_EQ(log.lines.front().text, "line 1500");
  // A worker that never ends a line, in characters of three bytes.
  std::string endless;
  for (int i = 0; i < 20'000; ++i) endless += "損";
  for (int i = 0; i < 20; ++i) Print(log, endless);
  EXPECT_THAT(log.lines, SizeIs(RankLog::kMostLines));
  EXPECT_LT(log.begun[0].bytes.size(), RankLog::kMostLineBytes);
  for (const LogLine& line : log.lines) {
    EXPECT_LE(line.text.size(), RankLog::kMostLineBytes);
    EXPECT_EQ(line.text.find('?'), std::string::npos) << "a character was cut in two";
  }
}

TEST(RankLogTest, HowItEndsIsALineOfIts) {
  RankLog log{.run_id = "job", .rank = 3};
  EXPECT_TRUE(RequestFor(log).extent.follow);
  EXPECT_FALSE(RequestFor(log).previous);
  EXPECT_THAT(RequestFor(log).ranks, ElementsAre(rendezvous::RankRange{3, 3}));
  OnLogEnd(log, absl::OkStatus());
  EXPECT_EQ(log.end, RankLog::End::kAllTold);
  EXPECT_EQ(log.lines.back().text, "the job has ended; rank 3 prints nothing more");
  RankLog before{.run_id = "job", .rank = 3, .of_round_before = true};
  EXPECT_FALSE(RequestFor(before).extent.follow);
  EXPECT_TRUE(RequestFor(before).previous);
  OnLogEnd(before, absl::OkStatus());
  EXPECT_EQ(before.lines.back().text, "end of what rank 3 printed in the round before");
  RankLog failed;
  OnLogEnd(failed, absl::OutOfRangeError("a:1: job 'job' has no rank 9"));
  EXPECT_EQ(failed.end, RankLog::End::kFailed);
  EXPECT_EQ(failed.lines.back().text, "a:1: job 'job' has no rank 9");
  RankLog away{.rank = 3};
  Print(away, "half a ");
  OnLogOutage(away, "a:1: the daemon stopped");
  EXPECT_EQ(away.end, RankLog::End::kNotYet);
  Print(away, "line\n");
  EXPECT_THAT(LinesOf(away),
              ElementsAre(LogLine{Source::kMuster, "a:1: the daemon stopped; it goes on here"},
                          LogLine{Source::kStdout, "half a line"}));
  RankLog cut;
  EXPECT_THAT(LinesOf(cut), IsEmpty());
  OnLogEnd(cut, absl::UnavailableError("a:1: the daemon stopped"));
  EXPECT_EQ(cut.end, RankLog::End::kCutOff);
}

}  // namespace
}  // namespace muster::launcher
