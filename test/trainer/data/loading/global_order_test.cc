#include "trainer/data/loading/global_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "trainer/data/loading/sampler.h"

namespace muster::trainer {
namespace {

// What all ranks of a world of `world_size` take in the steps from `position` on, step by step.
std::vector<std::multiset<std::int64_t>> Steps(const GlobalOrder& order, std::int64_t position,
                                               std::int64_t batch, int world_size) {
  std::vector<std::multiset<std::int64_t>> steps(
      static_cast<std::size_t>(order.StepsLeft(position, batch)));
  for (int rank = 0; rank < world_size; ++rank) {
    const std::vector<RankBatch> mine = order.From(position, batch, rank, world_size);
    EXPECT_EQ(mine.size(), steps.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      steps[i].insert(mine[i].indices.begin(), mine[i].indices.begin() + mine[i].own);
    }
  }
  return steps;
}

TEST(GlobalOrderTest, DealsWhatDistributedSamplerDeals) {
  constexpr std::int64_t kBatch = 24;
  for (const int world_size : {1, 2, 3, 4, 8}) {
    for (int rank = 0; rank < world_size; ++rank) {
      DistributedSampler sampler(
          {.dataset_size = 1003, .rank = rank, .world_size = world_size, .seed = 7});
      sampler.SetEpoch(2);
      const GlobalOrder order(1003, /*seed=*/7, /*epoch=*/2);
      std::vector<std::int64_t> indices;
      std::int64_t own = 0;
      for (const RankBatch& step : order.From(0, kBatch, rank, world_size)) {
        indices.insert(indices.end(), step.indices.begin(), step.indices.end());
        own += step.own;
      }
      EXPECT_EQ(indices, sampler.Indices()) << "rank " << rank << " of " << world_size;
      EXPECT_EQ(own, sampler.OwnAmongFirst(sampler.samples_per_rank()));
    }
  }
}

TEST(GlobalOrderTest, AnotherWorldSizeGoesOnExactlyWhereTheFirstStopped) {
  const GlobalOrder order(1003, /*seed=*/1, /*epoch=*/0);
  const auto undisturbed = Steps(order, 0, 24, 4);
  const std::int64_t position = order.From(0, 24, 0, 4)[9].end_position;
  EXPECT_EQ(position, 240);
  // 5 and 7 do not divide the batch of 24.
  for (const int world_size : {1, 2, 3, 5, 7, 8}) {
    const auto resumed = Steps(order, position, 24, world_size);
    ASSERT_EQ(resumed.size(), undisturbed.size() - 10);
    EXPECT_TRUE(std::equal(resumed.begin(), resumed.end(), undisturbed.begin() + 10))
        << world_size << " ranks";
  }
}

TEST(GlobalOrderTest, AnotherBatchSizeTakesEachSampleLeftOnce) {
  const GlobalOrder order(103, /*seed=*/1, /*epoch=*/3);
  std::multiset<std::int64_t> all;
  for (const auto& step : Steps(order, 0, 16, 2)) {
    if (all.size() == 48) break;
    all.insert(step.begin(), step.end());
  }
  for (const auto& step : Steps(order, 48, 20, 5)) all.insert(step.begin(), step.end());
  std::multiset<std::int64_t> expected;
  for (std::int64_t i = 0; i < 103; ++i) expected.insert(i);
  EXPECT_EQ(all, expected);
}

TEST(GlobalOrderTest, RanksHaveEquallyManyToPassThroughTheModel) {
  const GlobalOrder order(10, /*seed=*/0, /*epoch=*/0);
  // The last step has 2 samples for 4 ranks.
  std::int64_t own = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const RankBatch last = order.At(8, 8, rank, 4);
    EXPECT_EQ(last.indices.size(), 1u);
    EXPECT_EQ(last.own, rank < 2 ? 1 : 0);
    EXPECT_EQ(last.global, 2);
    EXPECT_EQ(last.mean_own(4), 0.5);
    EXPECT_EQ(last.end_position, 10);
    own += last.own;
  }
  EXPECT_EQ(own, 2);
}

TEST(GlobalOrderTest, MoreRanksThanSamples) {
  const GlobalOrder order(3, /*seed=*/0, /*epoch=*/0);
  std::multiset<std::int64_t> all;
  for (int rank = 0; rank < 8; ++rank) {
    const RankBatch step = order.At(0, 8, rank, 8);
    ASSERT_EQ(step.indices.size(), 1u);
    all.insert(step.indices.begin(), step.indices.begin() + step.own);
  }
  EXPECT_EQ(all, (std::multiset<std::int64_t>{0, 1, 2}));
}

TEST(GlobalOrderTest, NothingIsLeftAtTheEnd) {
  const GlobalOrder order(10, /*seed=*/0, /*epoch=*/0);
  EXPECT_EQ(order.StepsLeft(10, 4), 0);
  EXPECT_TRUE(order.From(10, 4, 0, 1).empty());
  EXPECT_EQ(order.StepsLeft(9, 4), 1);
}

TEST(GlobalOrderTest, WithoutShufflingTheOrderIsThatOfTheData) {
  const GlobalOrder order(6, /*seed=*/5, /*epoch=*/5, /*shuffle=*/false);
  EXPECT_EQ(order.At(0, 6, 1, 2).indices, (std::vector<std::int64_t>{1, 3, 5}));
}

}  // namespace
}  // namespace muster::trainer
