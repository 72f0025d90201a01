#include "trainer/app/training/train_state.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace muster::trainer {
namespace {

TrainState Some() {
  return {.step = 70,
          .epoch = 1,
          .position = 256,
          .epoch_loss = {1.5, 256},
          .report_loss = {0.25, 128},
          .seed = 0xFFFFFFFFFFFFFFFF,
          .dataset_size = 2050,
          .batch_size = 128,
          .parts = 2,
          .asked_batch_size = 192,
          .asked_share = 64,
          .best = {.loss = 0.5, .step = 60, .tests_since = 1}};
}

TEST(TrainStateTest, ComesBackFromACheckpointAsItWas) {
  const absl::StatusOr<TrainState> back = ReadTrainState(TrainStateValue(Some()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->step, 70);
  EXPECT_EQ(back->epoch, 1);
  EXPECT_EQ(back->position, 256);
  EXPECT_EQ(back->epoch_loss.loss, 1.5);
  EXPECT_EQ(back->report_loss.predictions, 128);
  EXPECT_EQ(back->seed, 0xFFFFFFFFFFFFFFFF);
  EXPECT_EQ(back->dataset_size, 2050);
  EXPECT_EQ(back->batch_size, 128);
  EXPECT_EQ(back->parts, 2);
  EXPECT_EQ(back->asked_batch_size, 192);
  EXPECT_EQ(back->asked_share, 64);
  EXPECT_EQ(back->best.loss, 0.5);
  EXPECT_EQ(back->best.step, 60);
  EXPECT_EQ(back->best.tests_since, 1);
}

TEST(TrainStateTest, AnOlderCheckpointDoesNotSayWhatBatchWasAskedFor) {
  const Value newer = TrainStateValue(Some());
  Dict older;
  for (const auto& [key, value] : *newer.dict()) {
    if (ToString(key).find("asked") == std::string::npos) older.Set(key, value);
  }
  const absl::StatusOr<TrainState> back = ReadTrainState(older);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->batch_size, 128);
  EXPECT_EQ(back->asked_batch_size, 0);
  EXPECT_EQ(back->asked_share, 0);
}

// Training with such a batch made no progress, and no test was better than such a best one.
TEST(TrainStateTest, WhatNoTrainingHasIsRefused) {
  TrainState large = Some();
  large.batch_size = std::numeric_limits<std::int64_t>::max();
  TrainState unknown = Some();
  unknown.best.loss = std::numeric_limits<double>::quiet_NaN();
  for (const TrainState& state : {large, unknown}) {
    EXPECT_EQ(ReadTrainState(TrainStateValue(state)).status().message(),
              "its sampler's state contradicts itself");
  }
}

TEST(TrainStateTest, AnOldCheckpointWithFewerEntriesIsRead) {
  const Value now = TrainStateValue(Some());
  Dict old;
  for (const auto& [key, value] : *now.dict()) {
    if (key != ValueKey("best")) old.Append(key, value);
  }
  const absl::StatusOr<TrainState> back = ReadTrainState(old);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->best.step, 0);
}

TEST(TrainStateTest, WhatCannotBeIsRefused) {
  const auto message = [](const Value& value) {
    return std::string(ReadTrainState(value).status().message());
  };
  EXPECT_EQ(message(Value()), "'step' is missing");
  TrainState beyond = Some();
  beyond.position = 2051;
  EXPECT_EQ(message(TrainStateValue(beyond)), "its sampler's state contradicts itself");
  TrainState negative = Some();
  negative.epoch = -1;
  EXPECT_EQ(message(TrainStateValue(negative)), "'epoch' is -1");
  Dict typed = *TrainStateValue(Some()).dict();
  typed.Set("batch_size", "128");
  EXPECT_EQ(message(typed).rfind("'batch_size' is ", 0), 0u) << message(typed);
}

}  // namespace
}  // namespace muster::trainer
