#include "trainer/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace muster::trainer {
namespace {

void ExpectRates(const ScheduleOptions& options, const std::vector<double>& expected) {
  ASSERT_TRUE(CheckSchedule(options).ok());
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(LearningRateAt(options, static_cast<std::int64_t>(step)), expected[step], 1e-15)
        << "step " << step;
  }
}

// The numbers below were made with Debian's python3-torch 1.13.1: optimizer.param_groups[0]['lr']
// before each step, with scheduler.step() after it.

TEST(ScheduleTest, ConstantAfterLinearLR) {
  // LinearLR(optimizer, 0.2, total_iters=4)
  ExpectRates({.learning_rate = 0.1, .warmup_steps = 4, .warmup_start = 0.2},
              {0.02, 0.04, 0.06, 0.08, 0.1, 0.1, 0.1});
}

TEST(ScheduleTest, StepLR) {
  // StepLR(optimizer, 3, 0.5)
  ExpectRates({.kind = ScheduleKind::kStep, .learning_rate = 0.1, .step_size = 3, .gamma = 0.5},
              {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025});
}

TEST(ScheduleTest, CosineAnnealingLR) {
  // CosineAnnealingLR(optimizer, 8, 0.01)
  ExpectRates(
      {.kind = ScheduleKind::kCosine, .learning_rate = 0.1, .total_steps = 8, .minimum = 0.01},
      {0.10000000000000001, 0.096574578963007904, 0.08681980515339463, 0.072220754456429045, 0.055,
       0.037779245543570962, 0.023180194846605363, 0.013425421036992097, 0.01});
}

TEST(ScheduleTest, StepLRAfterLinearLR) {
  // SequentialLR(optimizer, [LinearLR(optimizer, 0.25, total_iters=4), StepLR(optimizer, 3, 0.5)],
  // [4])
  ExpectRates({.kind = ScheduleKind::kStep,
               .learning_rate = 0.1,
               .warmup_steps = 4,
               .warmup_start = 0.25,
               .step_size = 3,
               .gamma = 0.5},
              {0.025, 0.04375, 0.0625, 0.08125, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025});
}

TEST(ScheduleTest, CosineAnnealingLRAfterLinearLR) {
  // SequentialLR(optimizer, [LinearLR(optimizer, 0.01, total_iters=3), CosineAnnealingLR(optimizer,
  // 7)], [3])
  ExpectRates(
      {.kind = ScheduleKind::kCosine, .learning_rate = 0.1, .warmup_steps = 3, .total_steps = 10},
      {0.001, 0.034, 0.067, 0.1, 0.09504844339512096, 0.081174490092936688, 0.061126046697815725,
       0.038873953302184287, 0.018825509907063328, 0.0049515566048790481, 0});
}

TEST(ScheduleTest, CosineStaysAtItsMinimum) {
  const ScheduleOptions options{
      .kind = ScheduleKind::kCosine, .learning_rate = 0.1, .total_steps = 8, .minimum = 0.01};
  EXPECT_EQ(LearningRateAt(options, 9), 0.01);
  EXPECT_EQ(LearningRateAt(options, 1000000), 0.01);
}

TEST(ScheduleTest, WhatIsNotDefinedForEveryStepIsRefused) {
  const auto refusal = [](const ScheduleOptions& options) {
    const absl::Status status = CheckSchedule(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(refusal({.learning_rate = 0}),
            "schedule the learning rate: it is 0, and must be above 0; give another --lr");
  EXPECT_EQ(refusal({.learning_rate = NAN}),
            "schedule the learning rate: it is nan, and must be above 0; give another --lr");
  EXPECT_EQ(refusal({.warmup_steps = -1}), "schedule the learning rate: a warm-up of -1 steps");
  EXPECT_EQ(refusal({.warmup_start = 0}),
            "schedule the learning rate: a warm-up from 0 times the learning rate, which must be "
            "above 0 and at most 1");
  EXPECT_EQ(refusal({.kind = ScheduleKind::kStep, .step_size = 0}),
            "schedule the learning rate: it cannot fall every 0 steps");
  EXPECT_EQ(refusal({.kind = ScheduleKind::kStep, .gamma = 2}),
            "schedule the learning rate: a factor of 2, which must be above 0 and at most 1");
  EXPECT_EQ(refusal({.kind = ScheduleKind::kCosine, .warmup_steps = 5, .total_steps = 5}),
            "schedule the learning rate: a cosine over 5 steps, of which 5 are warm-up");
  EXPECT_EQ(refusal({.kind = ScheduleKind::kCosine, .learning_rate = 0.1, .minimum = 0.2}),
            "schedule the learning rate: a minimum of 0.2, which must be from 0 to the learning "
            "rate");
}

}  // namespace
}  // namespace muster::trainer
