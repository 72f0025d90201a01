#include "launcher/run/log_deliveries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

using rendezvous::LogNotice;
using rendezvous::LogStream;
using rendezvous::LogText;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using worker::StreamLog;

constexpr rendezvous::RoundId kRound{7, 0};

// Ranks 2 and 3 of a node, without log files.
class LogReadingTest : public ::testing::Test {
 protected:
  LogReadingTest() { Begin(kRound); }

  void Begin(rendezvous::RoundId round) {
    std::vector<worker::WorkerSpec> specs(2);
    specs[0].rank = 2;
    specs[1].rank = 3;
    kept_.BeginRound(round, specs);
  }
  void Print(int rank, const std::string& bytes, LogStream stream = LogStream::kStdout) {
    Log(rank, stream).Append(bytes, bytes.size(), now_);
  }
  StreamLog& Log(int rank, LogStream stream) {
    const KeptLogs::Rank& kept = kept_.Find(kRound)->at(rank - 2);
    return stream == LogStream::kStdout ? *kept.out : *kept.err;
  }
  LogReading Read(rendezvous::LogExtent extent = {},
                  std::vector<rendezvous::RankRange> ranks = {{0, 9}},
                  rendezvous::RoundId round = kRound) {
    return LogReading({.round = round, .ranks = std::move(ranks), .extent = extent},
                      kept_.Find(round), "h", now_);
  }
  // All that there is now.
  static std::vector<std::string> Take(LogReading& reading) {
    std::vector<std::string> texts;
    for (;;) {
      const LogReading::Next next = reading.Take();
      if (std::holds_alternative<LogReading::NothingYet>(next)) return texts;
      if (std::holds_alternative<LogReading::All>(next)) {
        texts.push_back("all");
        return texts;
      }
      const auto& part = std::get<rendezvous::LogPart>(next);
      if (const auto* text = std::get_if<LogText>(&part)) {
        texts.push_back(absl::StrCat(text->rank, text->stream == LogStream::kStdout ? "o " : "e ",
                                     text->bytes));
      } else {
        const auto& notice = std::get<LogNotice>(part);
        texts.push_back(absl::StrCat(notice.is_loss ? "lost: " : "note: ", notice.sentence));
      }
    }
  }

  const StreamLog::Time now_{std::chrono::seconds(1000)};
  KeptLogs kept_;
};

TEST_F(LogReadingTest, RanksComeInOrderAndOfEachStdoutFirst) {
  Print(3, "c");
  Print(2, "b", LogStream::kStderr);
  Print(2, "a");
  LogReading reading = Read();
  Print(2, " later");
  EXPECT_THAT(Take(reading), ElementsAre("2o a", "2e b", "3o c", "all"));
}

TEST_F(LogReadingTest, FollowedOnesTakeTurnsUntilAllHaveEnded) {
  for (int i = 0; i < 2; ++i) Print(2, std::string(50'000, 'x'));
  Print(3, "y");
  LogReading reading = Read({.with_stderr = false, .follow = true});
  bool news = false;
  reading.WatchNews([&news] { news = true; });
  EXPECT_THAT(Take(reading), ElementsAre("2o " + std::string(65'536, 'x'), "3o y",
                                         "2o " + std::string(100'000 - 65'536, 'x')));
  Print(3, "z");
  EXPECT_TRUE(news);
  EXPECT_THAT(Take(reading), ElementsAre("3o z"));
  kept_.EndRound();
  EXPECT_THAT(Take(reading), ElementsAre("all"));
}

TEST_F(LogReadingTest, OnlyWhatIsAskedForIsRead) {
  Print(2, "1\n2\n3\n");
  Print(3, "4\n5\n");
  Print(3, "e\n", LogStream::kStderr);
  LogReading tail = Read({.with_stderr = false, .tail = 1});
  EXPECT_THAT(Take(tail), ElementsAre("2o 3\n", "3o 5\n", "all"));
  LogReading one = Read({}, {{3, 3}});
  EXPECT_THAT(Take(one), ElementsAre("3o 4\n5\n", "3e e\n", "all"));
  LogReading nothing_new = Read({.since = std::chrono::seconds(-1)});
  EXPECT_THAT(Take(nothing_new), ElementsAre("all"));
}

// A reader that has lost its daemon, and goes on where it was.
TEST_F(LogReadingTest, StreamsGoOnWhereTheyWereRead) {
  Print(2, "1\n2\n3\n");
  Print(3, "4\n");
  LogReading reading = Read({.with_stderr = false,
                             .tail = 0,
                             .follow = true,
                             .from = {{2, LogStream::kStdout, 2}, {3, LogStream::kStdout, 2}}});
  EXPECT_THAT(Take(reading), ElementsAre("2o 2\n3\n"));
  Print(3, "5\n");
  EXPECT_THAT(Take(reading), ElementsAre("3o 5\n"));
}

// A reader may lose its daemon before there is any output: what is printed meanwhile must not be
// left out.
TEST_F(LogReadingTest, WhoFollowsAPartIsToldWhereItBegins) {
  Print(2, "1\n2\n");
  LogReading reading = Read({.with_stderr = false, .tail = 1, .follow = true}, {{2, 2}});
  std::vector<std::uint64_t> offsets;
  for (;;) {
    const LogReading::Next next = reading.Take();
    if (std::holds_alternative<LogReading::NothingYet>(next)) break;
    offsets.push_back(*std::get<LogText>(std::get<rendezvous::LogPart>(next)).offset);
  }
  EXPECT_THAT(offsets, ElementsAre(2, 2)) << "once without bytes, and once with them";
}

// A reader who is slower than a rank that has no file.
TEST_F(LogReadingTest, WhatWasGoneBeforeItWasReadIsTold) {
  Print(2, "a");
  LogReading reading = Read({.follow = true}, {{2, 2}});
  EXPECT_THAT(Take(reading), ElementsAre("2o a"));
  Print(2, std::string(200'000, 'x'));
  EXPECT_THAT(Take(reading),
              ElementsAre("lost: 134464 bytes of stdout of rank 2 were dropped before they were "
                          "read, as they are not in a file (--tee, --redirects)",
                          "2o " + std::string(65'536, 'x')));
}

TEST_F(LogReadingTest, WhoAsksForAllIsToldThatThisIsNotAll) {
  Print(2, std::string(200'000, 'x'));
  LogReading reading = Read({}, {{2, 2}});
  EXPECT_THAT(Take(reading), ElementsAre(StartsWith("note: of stdout of rank 2 on host h the last "
                                                    "65536 of 200000 bytes are kept; --tee=3"),
                                         HasSubstr("2o x"), "all"));
}

// "muster logs printed nothing, and I thought that my ranks did."
TEST_F(LogReadingTest, StreamsThatDoNotComeByAreNamed) {
  for (const int rank : {2, 3}) Log(rank, LogStream::kStdout).Bypass(StreamLog::Way::kConsole);
  Log(3, LogStream::kStderr).Bypass(StreamLog::Way::kNowhere);
  Print(2, "e", LogStream::kStderr);
  LogReading reading = Read();
  EXPECT_THAT(
      Take(reading),
      ElementsAre(StartsWith("note: stdout of ranks 2, 3 on host h goes straight to where "
                             "`muster run` prints and is not kept; --tee=3"),
                  StartsWith("note: stderr of rank 3 on host h is discarded"), "2e e", "all"));
}

TEST_F(LogReadingTest, RoundsThatAreLongOverAreForgotten) {
  Print(2, "a");
  for (int round = 1; round <= 3; ++round) Begin({7, round});
  EXPECT_EQ(Log(2, LogStream::kStdout).begin(), 1u) << "it was in memory";
  for (int round = 4; round <= 16; ++round) Begin({7, round});
  EXPECT_EQ(kept_.Find(kRound), nullptr);
  LogReading reading = Read();
  EXPECT_THAT(Take(reading), ElementsAre("lost: host h keeps nothing of round 0 any more", "all"));
}

// The daemon has asked for it before this node was told of it.
TEST_F(LogReadingTest, RoundThatHasNotBegunHereIsToCome) {
  EXPECT_FALSE(kept_.IsToCome(kRound));
  EXPECT_TRUE(kept_.IsToCome({7, 1}));
  EXPECT_TRUE(kept_.IsToCome({8, 0})) << "another life of the job";
  Begin({7, 2});
  EXPECT_FALSE(kept_.IsToCome({7, 1})) << "it was begun without this node";
  EXPECT_TRUE(kept_.IsToCome({7, 3}));
}

}  // namespace
}  // namespace muster::launcher
