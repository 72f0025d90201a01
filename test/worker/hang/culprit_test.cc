// Which rank is to blame: facts about the silent ranks go in, one of them comes out.
#include "worker/hang/activity.h"

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

using Kind = Activity::Kind;

Culprit Known(int rank) {
  return {.rank = rank, .known = true};
}

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
  EXPECT_EQ(PickCulprit({{0}, {1}, {2, true}}, {In(0, 30), In(1, 30), In(2, 30)}), Known(2));
  EXPECT_EQ(PickCulprit({{0}, {1}, {2, true}}, {In(0, 30), Left(1, 29), In(2, 30)}), Known(2))
      << "whatever the logs say";
  EXPECT_EQ(PickCulprit({{0}, {2, true}, {1, true}}, {In(0, 30), Left(1, 29), In(2, 30)}), Known(1))
      << "of two that are stopped the one that is awaited";
}

// Rank 1 hung in its data loader, and rank 0, which waited for it, was killed.
TEST(CulpritTest, WhomTheOthersWaitForIsToBlame) {
  EXPECT_EQ(PickCulprit({{0}, {1}, {2}}, {In(0, 30), Left(1, 29), In(2, 30)}), Known(1));
  EXPECT_EQ(PickCulprit({{0}, {1}, {2}}, {In(0, 30), In(1, 30), In(2, 29)}), Known(2));
}

TEST(CulpritTest, OtherwiseTheOneThatFellSilentFirstIsTakenAndNotBlamed) {
  EXPECT_EQ(PickCulprit({{1}, {0}}, {}), Culprit{1});
  EXPECT_EQ(PickCulprit({{1}, {0}}, {WithoutLog(0), WithoutLog(1)}), Culprit{1});
  EXPECT_EQ(PickCulprit({{1}, {0}}, {Left(0, 8), Left(1, 9)}), Culprit{1}) << "nobody waits";
  EXPECT_EQ(PickCulprit({{1}}, {}), Known(1)) << "there is no other";
}

// A script without beats: rank 2 slept, and rank 0 was named as the root cause.
TEST(CulpritTest, WithoutLogsTheOneThatDoesSomethingElseIsToBlame) {
  const std::vector<Activity> sleeps = {{0, Kind::kMayWait, "waits in futex"},
                                        {1, Kind::kMayWait, "waits in futex"},
                                        {2, Kind::kElsewhere, "sleeps"}};
  EXPECT_EQ(PickCulprit({{0}, {1}, {2}}, {}, sleeps),
            (Culprit{.rank = 2, .known = true, .doing = "sleeps"}));
  EXPECT_EQ(PickCulprit({{0}, {1, true}, {2}}, {}, sleeps), Known(1)) << "1 is stopped";
  EXPECT_EQ(PickCulprit({{0}, {1}, {2}}, {In(0, 30), Left(1, 29), In(2, 30)}, sleeps), Known(1))
      << "logs say more";
  EXPECT_FALSE(PickCulprit({{0}, {1}}, {}, sleeps).known) << "2 is alive";
  EXPECT_FALSE(PickCulprit({{0}, {1}, {2}, {3}}, {}, sleeps).known) << "3 was not looked at";
}

TEST(CulpritTest, WhereAllWaitByWhatTheyDoTheOneToBlameMayBeOnAnotherNode) {
  const Activity waits = {0, Kind::kMayWait, "waits in futex"};
  const Activity meets = {1, Kind::kInCollective, "is in an operation", {"c10d::wait"}};
  EXPECT_TRUE(PickCulprit({{0}, {1}}, {}, {waits, meets}).only_waits);
  EXPECT_TRUE(PickCulprit({{0}}, {}, {waits}).only_waits);
  EXPECT_FALSE(PickCulprit({{0}}, {}, {{0, Kind::kElsewhere, "sleeps"}}).only_waits);
  EXPECT_FALSE(PickCulprit({{0}}, {}, {{0, Kind::kMayWait, "waits", {"lock"}}}).only_waits)
      << "its stack shows that it is in no operation";
  EXPECT_FALSE(PickCulprit({{0}}, {}, {{.rank = 0}}).only_waits) << "nothing is known of it";
}

TEST(CulpritTest, OthersThanTheSuspectsAreNotAskedFor) {
  EXPECT_EQ(PickCulprit({{0}}, {In(0, 30), Left(1, 29)}), (Culprit{.rank = 0, .only_waits = true}))
      << "1 is alive";
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
