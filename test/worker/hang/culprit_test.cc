// Which rank is to blame: what is known of the silent ones goes in, one of them comes out.
#include "worker/hang/culprit.h"

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

RankFlight In(int rank, std::uint32_t number) {
  return {rank, {{.operation = "all-reduce", .number = number, .entered_ns = 1}}};
}
RankFlight Left(int rank, std::uint32_t number) {
  return {rank, {{.operation = "all-reduce", .number = number, .entered_ns = 1, .left_ns = 2}}};
}
RankFlight WithoutLog(int rank) {
  return {.rank = rank, .records = {}, .kept = false};
}

// Rank 2 was stopped, and rank 0 was killed and named as the root cause.
TEST(CulpritTest, WhoIsStoppedIsToBlame) {
  EXPECT_EQ(PickCulprit({{0}, {1}, {2, true}}, {In(0, 30), In(1, 30), In(2, 30)}), (Culprit{2}));
  EXPECT_EQ(PickCulprit({{0}, {1}, {2, true}}, {In(0, 30), Left(1, 29), In(2, 30)}), (Culprit{2}))
      << "whatever the logs say";
  EXPECT_EQ(PickCulprit({{0}, {2, true}, {1, true}}, {In(0, 30), Left(1, 29), In(2, 30)}),
            (Culprit{1}))
      << "of two that are stopped the one that is awaited";
}

// Rank 1 hung in its data loader, and rank 0 was killed, which waited for it.
TEST(CulpritTest, WhomTheOthersWaitForIsToBlame) {
  EXPECT_EQ(PickCulprit({{0}, {1}, {2}}, {In(0, 30), Left(1, 29), In(2, 30)}), (Culprit{1}));
  EXPECT_EQ(PickCulprit({{0}, {1}, {2}}, {In(0, 30), In(1, 30), In(2, 29)}), (Culprit{2}));
}

TEST(CulpritTest, OtherwiseTheOneThatFellSilentFirst) {
  EXPECT_EQ(PickCulprit({{1}, {0}}, {}), (Culprit{1}));
  EXPECT_EQ(PickCulprit({{1}, {0}}, {WithoutLog(0), WithoutLog(1)}), (Culprit{1}));
  EXPECT_EQ(PickCulprit({{1}, {0}}, {Left(0, 8), Left(1, 9)}), (Culprit{1})) << "nobody waits";
}

TEST(CulpritTest, OthersThanTheSuspectsAreNotAskedFor) {
  EXPECT_EQ(PickCulprit({{0}}, {In(0, 30), Left(1, 29)}), (Culprit{0, true})) << "1 is alive";
}

TEST(CulpritTest, ARankThatOnlyWaitsIsKnownAsSuch) {
  EXPECT_TRUE(PickCulprit({{0}, {1}}, {In(0, 30), In(1, 30)}).only_waits);
  EXPECT_FALSE(PickCulprit({{0}, {1}}, {In(0, 30), In(1, 29)}).only_waits);
  EXPECT_FALSE(PickCulprit({{0, true}}, {In(0, 30)}).only_waits) << "it is stopped";
  EXPECT_FALSE(PickCulprit({{0}}, {Left(0, 29)}).only_waits);
  EXPECT_FALSE(PickCulprit({{0}}, {WithoutLog(0)}).only_waits) << "nothing is known of it";
}

}  // namespace
}  // namespace muster::worker
