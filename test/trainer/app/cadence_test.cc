#include "trainer/worker/timing.h"

#include <limits>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(CadenceTest, FastStepsAreTakenManyBetweenTwoAgreements) {
  Cadence cadence;
  EXPECT_EQ(cadence.interval(), 1);
  for (int i = 0; i < 20; ++i) cadence.OnAgreed(0.001);
  EXPECT_EQ(cadence.interval(), 250);
}

TEST(CadenceTest, AMisleadingFirstStepDoublesTheIntervalAtMost) {
  Cadence cadence;
  cadence.OnAgreed(1e-9);
  EXPECT_EQ(cadence.interval(), 2);
  cadence.OnAgreed(0);
  EXPECT_EQ(cadence.interval(), 4);
}

TEST(CadenceTest, SlowStepsAreAgreedOnOneByOne) {
  Cadence cadence;
  cadence.OnAgreed(0.01);
  cadence.OnAgreed(3.0);
  EXPECT_EQ(cadence.interval(), 1);
}

}  // namespace
}  // namespace muster::trainer
