#include "trainer/optim/gradients.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

using State = LossScaler::State;

TEST(LossScalerTest, IsHalvedByAnOverflowAndDoubledAfterAWindowWithoutOne) {
  LossScaler scaler(1024, /*window=*/3);
  scaler.Update(false);
  EXPECT_EQ(scaler.state(), (State{512, 0}));
  scaler.Update(true);
  scaler.Update(true);
  EXPECT_EQ(scaler.state(), (State{512, 2}));
  // The window starts over.
  scaler.Update(false);
  EXPECT_EQ(scaler.state(), (State{256, 0}));
  for (int i = 0; i < 3; ++i) scaler.Update(true);
  EXPECT_EQ(scaler.state(), (State{512, 0}));
}

// A run resumed with a shorter window than before, and already past it, never grew again.
TEST(LossScalerTest, AWindowThatIsOverIsOver) {
  LossScaler scaler(1024, /*window=*/10);
  scaler.Load({1024, 15});
  scaler.Update(true);
  EXPECT_EQ(scaler.state(), (State{2048, 0}));
}

// A gradient that is not finite by itself would halve it forever, and every step be skipped.
TEST(LossScalerTest, DoesNotFallBelowOneOrWhatItBeganWith) {
  LossScaler scaler(4, /*window=*/100);
  scaler.Update(false);
  EXPECT_TRUE(scaler.blames_scale());
  scaler.Update(false);
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_FALSE(scaler.blames_scale());
  scaler.Update(false);
  EXPECT_EQ(scaler.scale(), 1);

  LossScaler small(0.25, /*window=*/100);
  EXPECT_FALSE(small.blames_scale());
  small.Update(false);
  EXPECT_EQ(small.scale(), 0.25);
}

TEST(LossScalerTest, StaysFinite) {
  LossScaler scaler(0x1p126, /*window=*/1);
  scaler.Update(true);
  scaler.Update(true);
  EXPECT_EQ(scaler.scale(), 0x1p127);
}

TEST(LossScalerTest, GoesOnWhereItWas) {
  LossScaler scaler(1024, /*window=*/3);
  scaler.Load({256, 2});
  scaler.Update(true);
  EXPECT_EQ(scaler.state(), (State{512, 0}));
}

}  // namespace
}  // namespace muster::trainer
