#include "worker/flight_report.h"

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNow = 1000 * kSecond;

FlightRecord Left(std::uint32_t number, std::int64_t seconds_ago) {
  return {.operation = "all-reduce",
          .number = number,
          .tensor = "fc1.weight",
          .bytes = 400,
          .entered_ns = 1,
          .left_ns = kNow - seconds_ago * kSecond};
}

FlightRecord In(std::uint32_t number, std::int64_t seconds) {
  return {.operation = "all-reduce",
          .number = number,
          .tensor = "fc2.weight",
          .bytes = 400,
          .entered_ns = kNow - seconds * kSecond};
}

// A user saw "timed out after 300 s" from three ranks, and had to guess which of four was late.
TEST(FlightReportTest, NamesWhoWaitsAndWhoIsElsewhere) {
  EXPECT_EQ(ExplainFlights({{0, {Left(811, 301), In(812, 300)}},
                            {1, {Left(810, 303), Left(811, 302)}},
                            {2, {In(812, 299)}},
                            {3, {}}},
                           kNow),
            "ranks 0, 2 wait in all-reduce 812 (fc2.weight) for 300 s; rank 1 left all-reduce 811 "
            "(fc1.weight) 302 s ago; rank 3 has begun nothing");
}

// The report said "rank 1 has begun nothing" of another user's rank, which could not open its log.
TEST(FlightReportTest, OfARankWithoutALogNothingIsSaid) {
  EXPECT_EQ(ExplainFlights({{0, {In(812, 300)}},
                            {.rank = 1, .records = {}, .kept = false},
                            {2, {}},
                            {.rank = 3, .records = {}, .kept = false}},
                           kNow),
            "rank 0 waits in all-reduce 812 (fc2.weight) for 300 s; ranks 1, 3 keep no log; rank 2 "
            "has begun nothing");
}

TEST(FlightReportTest, OfSeveralItIsTheFirstThatHasNotEnded) {
  EXPECT_EQ(ExplainFlights({{5, {Left(7, 9), In(8, 2), In(9, 1)}}}, kNow),
            "rank 5 waits in all-reduce 8 (fc2.weight) for 2 s");
}

TEST(FlightReportTest, ALeaderWaitsForOtherHostsInsideOfWhatItsHostWaitsFor) {
  FlightRecord host = In(8, 4);
  host.part = FlightPart::kHost;
  FlightRecord leaders = In(3, 2);
  leaders.part = FlightPart::kLeaders;
  leaders.tensor.clear();
  EXPECT_EQ(ExplainFlights({{0, {host, leaders}}, {1, {host}}}, kNow),
            "rank 0 waits in all-reduce 3 between hosts (400 bytes) for 2 s; rank 1 waits in "
            "all-reduce 8 in shared memory (fc2.weight) for 4 s");
}

FlightRecord Of(const std::string& group, FlightRecord record) {
  record.group = group;
  return record;
}

TEST(FlightReportTest, SeveralGroupsAreNamed) {
  EXPECT_EQ(ExplainFlights({{0, {Of("tp/0", In(812, 5))}},
                            {1, {Of("tp/0", Left(811, 6)), In(812, 4)}},
                            {2, {Of("tp/1", In(812, 5))}},
                            {3, {Of("tp/1", In(812, 5))}}},
                           kNow),
            "rank 0 waits in all-reduce 812 of tp/0 (fc2.weight) for 5 s; rank 1 waits in "
            "all-reduce 812 of all ranks (fc2.weight) for 4 s; ranks 2, 3 wait in all-reduce 812 "
            "of tp/1 (fc2.weight) for 5 s");
}

TEST(FlightReportTest, WhatAnotherGroupIsInLaterIsNotInside) {
  FlightRecord later = Of("tp/0", In(3, 2));
  later.part = FlightPart::kHost;
  EXPECT_EQ(ExplainFlights({{0, {Of("dp/0", In(8, 4)), later}}}, kNow),
            "rank 0 waits in all-reduce 8 of dp/0 (fc2.weight) for 4 s");
}

TEST(FlightReportTest, MessagesSayWithWhom) {
  const auto message = [](const std::string& operation, const std::string& other) {
    FlightRecord record = Of("pp/0", In(1, 3));
    record.part = FlightPart::kPair;
    record.operation = operation;
    record.tensor = other;
    return record;
  };
  EXPECT_EQ(ExplainFlights({{0, {message("receive", "from rank 1, tag 7")}},
                            {1, {message("receive", "from rank 0, tag 9")}}},
                           kNow),
            "rank 0 waits in receive 1 of pp/0 (from rank 1, tag 7) for 3 s; rank 1 waits in "
            "receive 1 of pp/0 (from rank 0, tag 9) for 3 s");
}

// A program caught the timeout of its first all-reduce and continued: from then on the report of
// every hang said "rank 0 waits in all-reduce 1".
TEST(FlightReportTest, WhatHasFailedIsOverOnceALaterOneIsFinished) {
  EXPECT_EQ(ExplainFlights({{0, {In(1, 60), Left(2, 9), In(3, 8)}}}, kNow),
            "rank 0 waits in all-reduce 3 (fc2.weight) for 8 s");
  EXPECT_EQ(ExplainFlights({{0, {In(1, 60), Of("tp/0", Left(2, 9))}}}, kNow),
            "rank 0 waits in all-reduce 1 (fc2.weight) for 60 s")
      << "another group may be ahead";
}

TEST(FlightReportTest, AMessageMayBeFinishedBeforeAnEarlierOne) {
  FlightRecord early = In(1, 5);
  early.part = FlightPart::kPair;
  early.operation = "receive";
  early.tensor = "from rank 1";
  FlightRecord late = Left(2, 3);
  late.part = FlightPart::kPair;
  late.operation = "receive";
  late.tensor = "from rank 2";
  EXPECT_EQ(ExplainFlights({{0, {early, late}}}, kNow),
            "rank 0 waits in receive 1 (from rank 1) for 5 s");
  late.tensor = early.tensor;
  EXPECT_EQ(ExplainFlights({{0, {early, late}}}, kNow),
            "rank 0 left receive 2 (from rank 1) 3 s ago")
      << "this one was behind it";
}

TEST(FlightReportTest, SaysNothingWhenNobodyWaits) {
  EXPECT_EQ(ExplainFlights({}, kNow), "");
  EXPECT_EQ(ExplainFlights({{0, {Left(811, 0)}}, {1, {Left(810, 0)}}}, kNow), "");
}

// The rank that hung was alone on its node, and the report did not mention it, as no rank waited
// there.
TEST(FlightReportTest, NamesWhoIsInNoOperationForLongWhereNobodyWaits) {
  EXPECT_EQ(ExplainFlights({{1, {Left(29, 60)}}, {2, {}}}, kNow),
            "rank 1 left all-reduce 29 (fc1.weight) 60 s ago; rank 2 has begun nothing");
  EXPECT_EQ(ExplainFlights({{1, {}}, {2, {}}}, kNow), "");
}

TEST(FlightReportTest, CountsRanksWhereThereAreTooManyPlaces) {
  std::vector<RankFlight> ranks;
  for (int rank = 0; rank < static_cast<int>(kShownPlaces) + 2; ++rank) {
    ranks.push_back({rank, {In(static_cast<std::uint32_t>(rank) + 1, 1)}});
  }
  const std::string told = ExplainFlights(ranks, kNow);
  EXPECT_NE(told.find("rank 63 waits in all-reduce 64 "), std::string::npos) << told;
  EXPECT_NE(told.find("for 1 s; 2 more ranks are elsewhere"), std::string::npos) << told;
}

TEST(FlightReportTest, TheLongestStayIsInAnOperationOrBehindOne) {
  EXPECT_EQ(LongestStay({{0, {Left(1, 3)}}, {1, {In(2, 5)}}, {2, {In(2, 7)}}}, kNow),
            std::chrono::seconds(7));
  EXPECT_EQ(LongestStay({{0, {Left(1, 100)}}, {1, {}}}, kNow), std::chrono::seconds(100));
  EXPECT_EQ(LongestStay({{0, {}}}, kNow), std::chrono::seconds(0));
}

// After a hang that was only reported, a later stop took its own explanation for already reported.
TEST(FlightReportTest, TheLastMoveTellsWhetherASentenceStillHolds) {
  EXPECT_EQ(LastMove({{0, {Left(811, 9), In(812, 8)}}, {1, {Left(811, 7)}}}), kNow - 7 * kSecond);
  EXPECT_EQ(LastMove({{0, {Left(811, 9), In(812, 2)}}, {1, {Left(811, 7)}}}), kNow - 2 * kSecond);
  EXPECT_EQ(LastMove({{0, {}}}), 0);
}

}  // namespace
}  // namespace muster::worker
