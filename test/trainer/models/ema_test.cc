#include "trainer/optim/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

class EmaTest : public testing::Test {
 protected:
  void Set(double value) {
    const at::NoGradGuard no_grad;
    parameter_.fill_(value);
  }
  double parameter() const { return parameter_[0].item<double>(); }
  double average() const { return ema_.averages()[0].tensor[0].item<double>(); }

  at::Tensor parameter_ = at::full({3}, 1.0, at::kDouble).requires_grad_();
  Ema ema_{{{"weight", parameter_}}, 0.75};
};

TEST_F(EmaTest, TheAverageFollowsTheParameter) {
  EXPECT_EQ(average(), 1);
  Set(5);
  EXPECT_EQ(average(), 1) << "it shares no memory with the parameter";
  ema_.Update();
  EXPECT_EQ(average(), 2);
  ema_.Update();
  EXPECT_EQ(average(), 2.75);
  EXPECT_EQ(parameter(), 5);
  ema_.Restart();
  EXPECT_EQ(average(), 5);
  EXPECT_EQ(ema_.averages()[0].name, "weight");
}

TEST_F(EmaTest, TheAverageTakesTheParametersPlaceForAWhile) {
  Set(5);
  {
    const EmaInPlace in_place(&ema_);
    EXPECT_EQ(parameter(), 1);
    EXPECT_EQ(average(), 5);
    EXPECT_TRUE(parameter_.requires_grad());
  }
  EXPECT_EQ(parameter(), 5);
  EXPECT_EQ(average(), 1);
  const EmaInPlace nothing(nullptr);
  EXPECT_EQ(parameter(), 5);
}

}  // namespace
}  // namespace muster::trainer
