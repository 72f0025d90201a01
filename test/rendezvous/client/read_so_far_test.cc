// What a reader of logs asks for after it has lost its daemon.
#include "rendezvous/core/values/log_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/core/values/limits.h"

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

LogText Text(int rank, const std::string& bytes, std::uint64_t offset) {
  return {.rank = rank, .bytes = bytes, .offset = offset};
}

class ReadSoFarTest : public ::testing::Test {
 protected:
  ReadSoFar read_{{.run_id = "job",
                   .ranks = {{0, 3}},
                   .previous = true,
                   .extent = {.since = seconds(60), .tail = 5, .follow = true}}};
};

TEST_F(ReadSoFarTest, TheRestIsWhatHasNotComeOfEachStream) {
  EXPECT_FALSE(read_.can_go_on()) << "nothing was told yet";
  EXPECT_TRUE(read_.Take(LogRound{4, "", 7}));
  EXPECT_TRUE(read_.Take(Text(1, "abc", 10)));
  EXPECT_TRUE(read_.Take(Text(1, "de", 13)));
  EXPECT_TRUE(read_.Take(Text(2, "", 100)));
  ASSERT_TRUE(read_.can_go_on());
  const LogRequest rest = read_.Rest(seconds(2));
  EXPECT_EQ(rest.run_id, "job");
  EXPECT_THAT(rest.ranks, ElementsAre(RankRange{0, 3}));
  EXPECT_EQ(rest.round, 4);
  EXPECT_FALSE(rest.previous);
  EXPECT_EQ(rest.incarnation, 7u);
  EXPECT_THAT(rest.extent.from, ElementsAre(LogPosition{1, LogStream::kStdout, 15},
                                            LogPosition{2, LogStream::kStdout, 100}));
  EXPECT_EQ(rest.extent.since, seconds(62)) << "the same moment";
  EXPECT_EQ(rest.extent.tail, 5) << "of streams that were not told of";
}

TEST_F(ReadSoFarTest, WhatWasSaidBeforeIsNotNew) {
  const LogNotice note{.sentence = "stdout goes elsewhere"};
  const LogNotice loss{.sentence = "gone", .is_loss = true};
  read_.Take(LogRound{4, "", 7});
  EXPECT_TRUE(read_.Take(note));
  EXPECT_FALSE(read_.Take(LogRound{4, "", 7}));
  EXPECT_FALSE(read_.Take(note));
  EXPECT_FALSE(read_.is_incomplete());
  EXPECT_TRUE(read_.Take(loss));
  EXPECT_TRUE(read_.Take(loss)) << "it may be another one";
  EXPECT_TRUE(read_.is_incomplete());
  EXPECT_TRUE(read_.Take(LogRound{5, "rank 0 fell", 7}));
  EXPECT_TRUE(read_.Take(note)) << "of another round";
}

TEST_F(ReadSoFarTest, OfALaterRoundAllIsWanted) {
  read_.Take(LogRound{4, "", 7});
  read_.Take(Text(1, "abc", 10));
  read_.Take(LogRound{5, "rank 0 fell", 7});
  const LogRequest rest = read_.Rest(seconds(2));
  EXPECT_EQ(rest.round, 5);
  EXPECT_THAT(rest.extent.from, IsEmpty());
  EXPECT_FALSE(rest.extent.since || rest.extent.tail);
}

TEST_F(ReadSoFarTest, OldDaemonsAndAgentsCannotBeAskedForTheRest) {
  read_.Take(LogRound{.round = 4});
  EXPECT_FALSE(read_.can_go_on());
  read_.Take(LogRound{4, "", 7});
  EXPECT_TRUE(read_.can_go_on());
  read_.Take(LogText{.rank = 1, .bytes = "abc"});
  EXPECT_FALSE(read_.can_go_on());
}

TEST_F(ReadSoFarTest, TooManyStreamsCannotBeNamed) {
  read_.Take(LogRound{4, "", 7});
  for (std::size_t rank = 0; rank < limits::kLogPositions.most; ++rank) {
    read_.Take(Text(static_cast<int>(rank), "a", 0));
  }
  EXPECT_TRUE(read_.can_go_on());
  read_.Take(Text(0x7fffffff, "a", 0));
  EXPECT_FALSE(read_.can_go_on());
}

}  // namespace
}  // namespace muster::rendezvous
