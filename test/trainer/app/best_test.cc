#include "trainer/app/training/train_state.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(BestTest, TheLowestLossIsTheBestAndTheFirstOfEqualOnes) {
  Best best;
  best.Add(10, 2.0);
  best.Add(20, 1.5);
  EXPECT_EQ(best.step, 20);
  EXPECT_EQ(best.tests_since, 0);
  best.Add(30, 1.5);
  best.Add(40, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(best.step, 20);
  EXPECT_EQ(best.loss, 1.5);
  EXPECT_EQ(best.tests_since, 2);
  best.Add(50, 1.0);
  EXPECT_EQ(best.step, 50);
  EXPECT_EQ(best.tests_since, 0);
}

TEST(BestTest, ATestThatGaveNoNumberIsNotTheBest) {
  Best best;
  best.Add(10, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(best.step, 0);
  EXPECT_EQ(best.tests_since, 1);
}

}  // namespace
}  // namespace muster::trainer
