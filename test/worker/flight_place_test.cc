// Which ranks the others wait for, according to their logs.
#include "worker/flight_report.h"

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

using Ranks = std::vector<int>;

FlightRecord Op(std::uint32_t number, std::int64_t left_ns, const std::string& group = "",
                FlightPart part = FlightPart::kAll) {
  return {.group = group,
          .part = part,
          .operation = "all-reduce",
          .number = number,
          .entered_ns = 1,
          .left_ns = left_ns};
}
FlightRecord Done(std::uint32_t number, const std::string& group = "") {
  return Op(number, 5, group);
}

// Rank 1 hung in its data loader, and rank 0, which waited for it in an all-reduce, was killed.
TEST(FlightPlaceTest, WhoIsInNoOperationIsAwaited) {
  EXPECT_EQ(AwaitedRanks({{0, {Done(29), Op(30, 0)}}, {1, {Done(29)}}, {2, {Op(30, 0)}}}),
            Ranks{1});
  EXPECT_EQ(AwaitedRanks({{0, {Op(30, 0)}}, {1, {}}}), Ranks{1}) << "it has begun nothing";
  EXPECT_EQ(AwaitedRanks({{0, {Op(30, 0)}}, {1, {Done(29)}}, {2, {Done(28)}}}), Ranks{2})
      << "the first of two";
  EXPECT_EQ(AwaitedRanks({{0, {Op(30, 0)}}, {1, {Done(29)}}, {2, {Done(29)}}}), (Ranks{1, 2}));
}

TEST(FlightPlaceTest, OfThoseInOperationsTheEarliestIsAwaited) {
  EXPECT_EQ(AwaitedRanks({{0, {Op(30, 0)}}, {1, {Op(29, 0)}}, {2, {Op(30, 0)}}}), Ranks{1});
  EXPECT_EQ(AwaitedRanks({{0, {Op(29, 0), Op(30, 0)}}, {1, {Op(29, 0)}}}), Ranks{1})
      << "0 has asked for two at once";
}

// Rank 0 waits for 1 in their group, and 1 for 2 in another.
TEST(FlightPlaceTest, WhoWaitsForAnotherOneIsNotToBlame) {
  EXPECT_EQ(
      AwaitedRanks(
          {{0, {Op(8, 0, "a")}}, {1, {Done(7, "a"), Op(500, 0, "b")}}, {2, {Op(499, 0, "b")}}}),
      Ranks{2});
}

TEST(FlightPlaceTest, NumbersOfDifferentGroupsAndPartsAreNotCompared) {
  EXPECT_EQ(AwaitedRanks({{0, {Op(8, 0, "a")}}, {1, {Op(3, 0, "b")}}}), Ranks{});
  EXPECT_EQ(
      AwaitedRanks({{0, {Op(8, 0, "", FlightPart::kHost), Op(3, 0, "", FlightPart::kLeaders)}},
                    {1, {Op(8, 0, "", FlightPart::kHost)}}}),
      Ranks{});
  EXPECT_EQ(AwaitedRanks(
                {{0, {Op(8, 0, "", FlightPart::kPair)}}, {1, {Op(3, 0, "", FlightPart::kPair)}}}),
            Ranks{})
      << "each rank counts its messages";
}

TEST(FlightPlaceTest, WhereLogsDoNotTellNobodyIsAwaited) {
  EXPECT_EQ(AwaitedRanks({}), Ranks{});
  EXPECT_EQ(AwaitedRanks({{0, {Done(30)}}, {1, {Done(29)}}}), Ranks{}) << "nobody waits";
  EXPECT_EQ(AwaitedRanks({{0, {Op(30, 0)}}, {1, {Op(30, 0)}}}), Ranks{});
  EXPECT_EQ(AwaitedRanks({{0, {Op(30, 0)}}, {.rank = 1, .records = {}, .kept = false}}), Ranks{});
}

}  // namespace
}  // namespace muster::worker
