#include "trainer/app/training/train_state.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

// A run and its restarts: what each would take from the previous checkpoint.
class BatchTest : public testing::Test {
 protected:
  void Begin(std::int64_t batch_size, int world_size) {
    ASSERT_TRUE(BeginBatch({batch_size, world_size, OnResize::kKeepBatch}, &state_).ok());
  }
  // The batch of the next run.
  std::int64_t Resume(std::int64_t batch_size, int world_size, OnResize on_resize) {
    EXPECT_TRUE(ResumeBatch({batch_size, world_size, on_resize}, &state_).ok());
    EXPECT_EQ(state_.parts, world_size);
    return state_.batch_size;
  }

  TrainState state_;
};

// A batch of 128 was 64 after one of two ranks was lost, 128 after the other crashed, and 256 when
// both were back.
TEST_F(BatchTest, AScaledBatchFollowsTheWorldHoweverOftenItRestarts) {
  Begin(128, 2);
  EXPECT_EQ(Resume(128, 1, OnResize::kScaleBatch), 64);
  EXPECT_EQ(Resume(128, 1, OnResize::kScaleBatch), 64);
  EXPECT_EQ(Resume(128, 2, OnResize::kScaleBatch), 128);
  EXPECT_EQ(Resume(128, 4, OnResize::kScaleBatch), 256);
  EXPECT_EQ(Resume(128, 2, OnResize::kScaleBatch), 128);
}

TEST_F(BatchTest, AKeptBatchStaysEvenWhereItIsUneven) {
  Begin(128, 4);
  EXPECT_EQ(Resume(128, 3, OnResize::kKeepBatch), 128);
  EXPECT_EQ(Resume(128, 3, OnResize::kKeepBatch), 128);
  // A rank's share is the requested one, not a third of the batch.
  EXPECT_EQ(Resume(128, 2, OnResize::kScaleBatch), 64);
}

TEST_F(BatchTest, AWorldThatHasNotChangedKeepsTheBatchItHad) {
  Begin(128, 2);
  EXPECT_EQ(Resume(128, 1, OnResize::kScaleBatch), 64);
  EXPECT_EQ(Resume(128, 1, OnResize::kKeepBatch), 64);
  EXPECT_EQ(Resume(128, 2, OnResize::kKeepBatch), 64);
}

TEST_F(BatchTest, AnotherBatchSizeCountsFromThenOn) {
  Begin(128, 2);
  EXPECT_EQ(Resume(96, 2, OnResize::kKeepBatch), 96);
  EXPECT_EQ(Resume(96, 1, OnResize::kScaleBatch), 48);
  EXPECT_EQ(Resume(96, 2, OnResize::kScaleBatch), 96);
  const absl::Status small = ResumeBatch({1, 2, OnResize::kKeepBatch}, &state_);
  EXPECT_EQ(small.message(), "--batch-size 1 has no sample for each of 2 ranks; take 2 or more");
  EXPECT_EQ(state_.batch_size, 96);
}

TEST_F(BatchTest, AnOlderCheckpointGoesByTheBatchItHad) {
  state_ = {.batch_size = 64, .parts = 1};
  EXPECT_EQ(Resume(128, 1, OnResize::kScaleBatch), 64);
  EXPECT_EQ(Resume(128, 2, OnResize::kScaleBatch), 128);
}

// "--batch-size 7 cannot be shared evenly by 2 ranks; take 6 or 8".
TEST_F(BatchTest, AnUnevenBatchIsScaledByItsLargestShare) {
  Begin(7, 2);
  EXPECT_EQ(state_.batch_size, 7);
  EXPECT_EQ(Resume(7, 4, OnResize::kScaleBatch), 16);
  EXPECT_EQ(Resume(7, 1, OnResize::kScaleBatch), 4);
  EXPECT_EQ(Resume(7, 2, OnResize::kScaleBatch), 7);
  EXPECT_EQ(Resume(7, 3, OnResize::kKeepBatch), 7);
}

TEST_F(BatchTest, ABatchHasASampleForEachRank) {
  TrainState state;
  EXPECT_EQ(BeginBatch({1, 2, OnResize::kKeepBatch}, &state).message(),
            "--batch-size 1 has no sample for each of 2 ranks; take 2 or more");
  EXPECT_EQ(state.batch_size, 0);
}

}  // namespace
}  // namespace muster::trainer
