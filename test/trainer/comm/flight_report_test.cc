#include "trainer/comm/flight_report.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNow = 1000 * kSecond;

FlightRecord Left(std::uint32_t number, std::int64_t seconds_ago) {
  return {FlightGroup::kRanks,         Operation::kAllReduce, number, "fc1.weight", 400, 1,
          kNow - seconds_ago * kSecond};
}

FlightRecord In(std::uint32_t number, std::int64_t seconds) {
  return {FlightGroup::kRanks,
          Operation::kAllReduce,
          number,
          "fc2.weight",
          400,
          kNow - seconds * kSecond,
          0};
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

TEST(FlightReportTest, OfSeveralItIsTheFirstThatHasNotEnded) {
  EXPECT_EQ(ExplainFlights({{5, {Left(7, 9), In(8, 2), In(9, 1)}}}, kNow),
            "rank 5 waits in all-reduce 8 (fc2.weight) for 2 s");
}

TEST(FlightReportTest, ALeaderWaitsForOtherHostsInsideOfWhatItsHostWaitsFor) {
  FlightRecord host = In(8, 4);
  host.group = FlightGroup::kHost;
  FlightRecord leaders = In(3, 2);
  leaders.group = FlightGroup::kLeaders;
  leaders.tensor.clear();
  EXPECT_EQ(ExplainFlights({{0, {host, leaders}}, {1, {host}}}, kNow),
            "rank 0 waits in all-reduce 3 between hosts (400 bytes) for 2 s; rank 1 waits in "
            "all-reduce 8 in shared memory (fc2.weight) for 4 s");
}

TEST(FlightReportTest, SaysNothingWhenNobodyWaits) {
  EXPECT_EQ(ExplainFlights({}, kNow), "");
  EXPECT_EQ(ExplainFlights({{0, {Left(811, 1)}}, {1, {Left(810, 1)}}}, kNow), "");
}

}  // namespace
}  // namespace muster::trainer
