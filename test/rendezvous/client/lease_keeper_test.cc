#include "rendezvous/client/agent_session.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

TimePoint At(int ms) {
  return TimePoint(milliseconds(ms));
}

TEST(LeaseKeeperTest, WithoutALeaseNothingEnds) {
  LeaseKeeper keeper;
  EXPECT_EQ(keeper.deadline(), std::nullopt);
  keeper.OnWelcome(Duration::zero(), false, At(0));
  EXPECT_EQ(keeper.deadline(), std::nullopt);
  keeper.Beat(At(10));
  EXPECT_EQ(keeper.doubtful_from(), std::nullopt);
}

TEST(LeaseKeeperTest, TheLeaseCountsFromWhenWhatWasAnsweredWasSent) {
  LeaseKeeper keeper;
  keeper.OnWelcome(milliseconds(3000), false, At(100));
  EXPECT_EQ(keeper.deadline(), At(2600));
  const std::int64_t first = keeper.Beat(At(1000));
  const std::int64_t second = keeper.Beat(At(2000));
  EXPECT_EQ(keeper.doubtful_from(), At(2500));
  EXPECT_EQ(keeper.deadline(), At(2600)) << "a beat that is not answered proves nothing";
  keeper.OnHeard(second);
  EXPECT_EQ(keeper.deadline(), At(4500));
  EXPECT_EQ(keeper.doubtful_from(), std::nullopt);
  keeper.OnHeard(first);
  EXPECT_EQ(keeper.deadline(), At(4500)) << "an older answer takes nothing back";
}

TEST(LeaseKeeperTest, BeatsOfABrokenConnectionAreNotAnsweredByTheNext) {
  LeaseKeeper keeper;
  keeper.OnWelcome(milliseconds(3000), false, At(0));
  const std::int64_t lost = keeper.Beat(At(1000));
  keeper.OnNewConnection();
  EXPECT_EQ(keeper.doubtful_from(), std::nullopt);
  keeper.OnHeard(lost);
  EXPECT_EQ(keeper.deadline(), At(2500));
  keeper.OnWelcome(milliseconds(3000), false, At(1800));
  EXPECT_EQ(keeper.deadline(), At(4300));
}

TEST(LeaseKeeperTest, NobodyDecidesWhileADaemonThatRemembersIsDead) {
  LeaseKeeper keeper;
  keeper.OnNobodyDecides(At(0));
  EXPECT_EQ(keeper.deadline(), std::nullopt) << "it never was welcome";
  keeper.OnWelcome(milliseconds(3000), true, At(0));
  keeper.OnNobodyDecides(At(1500));
  EXPECT_EQ(keeper.deadline(), At(4000));
  keeper.OnWelcome(milliseconds(3000), false, At(1600));
  keeper.OnNobodyDecides(At(3000));
  EXPECT_EQ(keeper.deadline(), At(4100)) << "who forgets may give everything away when it is back";
}

// The daemon may have given the place away before it died.
TEST(LeaseKeeperTest, ALeaseThatHasEndedIsNotMadeWholeByADeadDaemon) {
  LeaseKeeper keeper;
  keeper.OnWelcome(milliseconds(3000), true, At(0));
  keeper.OnNobodyDecides(At(2500));
  EXPECT_EQ(keeper.deadline(), At(2500));
}

}  // namespace
}  // namespace muster::rendezvous
