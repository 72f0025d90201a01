#include "trainer/worker/timing.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

using std::chrono::milliseconds;

TEST(PhaseClockTest, EveryMomentBelongsToOnePhase) {
  const PhaseClock::Clock::time_point start{};
  PhaseClock clock(start);
  clock.Enter(Phase::kData, start + milliseconds(5));
  clock.Enter(Phase::kForward, start + milliseconds(7));
  clock.Enter(Phase::kOther, start + milliseconds(17));
  clock.Enter(Phase::kOther, start + milliseconds(20));
  EXPECT_DOUBLE_EQ(clock.seconds(Phase::kOther), 0.008);
  EXPECT_DOUBLE_EQ(clock.seconds(Phase::kData), 0.002);
  EXPECT_DOUBLE_EQ(clock.seconds(Phase::kForward), 0.010);
  EXPECT_DOUBLE_EQ(clock.seconds(Phase::kBackward), 0);
}

TEST(PhaseClockTest, WaitingIsPartOfThePhaseInWhichItWas) {
  const PhaseClock::Clock::time_point start{};
  PhaseClock clock(start, milliseconds(100));
  clock.Enter(Phase::kBackward, start + milliseconds(5), milliseconds(102));
  clock.Enter(Phase::kOptimizer, start + milliseconds(25), milliseconds(115));
  clock.Enter(Phase::kOther, start + milliseconds(26), milliseconds(115));
  EXPECT_DOUBLE_EQ(clock.waited_seconds(Phase::kOther), 0.002);
  EXPECT_DOUBLE_EQ(clock.seconds(Phase::kBackward), 0.020);
  EXPECT_DOUBLE_EQ(clock.waited_seconds(Phase::kBackward), 0.013);
  EXPECT_DOUBLE_EQ(clock.waited_seconds(Phase::kOptimizer), 0);
}

TEST(PhaseClockTest, TheTableShowsMillisecondsOfAStepAndShares) {
  const PhaseClock::Clock::time_point start{};
  PhaseClock clock(start);
  clock.Enter(Phase::kForward, start + milliseconds(25));
  clock.Enter(Phase::kBackward, start + milliseconds(50));
  clock.Enter(Phase::kOther, start + milliseconds(100));
  const std::string table = FormatPhases(clock, 10);
  EXPECT_NE(table.find("forward         2.500   25.0 %\n"), std::string::npos) << table;
  EXPECT_NE(table.find("backward        5.000   50.0 % (with the comm"), std::string::npos)
      << table;
}

}  // namespace
}  // namespace muster::trainer
