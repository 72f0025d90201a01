#include "trainer/data/samples/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace muster::trainer {
namespace {

// What all ranks of a world of `world_size` take from `position` on, step by step.
std::vector<std::multiset<std::int64_t>> Steps(const GlobalOrder& order, std::int64_t position,
                                               std::int64_t batch, int world_size) {
  std::vector<std::multiset<std::int64_t>> steps(
      static_cast<std::size_t>(order.StepsLeft(position, batch)));
  for (int rank = 0; rank < world_size; ++rank) {
    const BatchPlan plan = order.From(position, batch, rank, world_size);
    EXPECT_EQ(plan.steps, static_cast<std::int64_t>(steps.size()));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const RankBatch mine = plan.at(static_cast<std::int64_t>(i));
      steps[i].insert(mine.indices.begin(), mine.indices.begin() + mine.own);
    }
  }
  return steps;
}

// The samples of one rank in a whole epoch, in order, including padding.
std::vector<std::int64_t> Dealt(const GlobalOrder& order, std::int64_t batch, int rank,
                                int world_size) {
  std::vector<std::int64_t> indices;
  const BatchPlan plan = order.From(0, batch, rank, world_size);
  for (std::int64_t i = 0; i < plan.steps; ++i) {
    const RankBatch step = plan.at(i);
    indices.insert(indices.end(), step.indices.begin(), step.indices.end());
  }
  return indices;
}

struct PythonCase {
  std::int64_t size;
  int rank;
  int world_size;
  bool shuffle;
  std::uint64_t seed;
  std::int64_t epoch;
  std::vector<std::int64_t> indices;
};

// Made with Debian's python3-torch 1.13.1:
//   sampler = torch.utils.data.DistributedSampler(range(size), world_size, rank, shuffle=shuffle,
//                                                 seed=seed)
//   sampler.set_epoch(epoch); list(sampler)
const PythonCase kPythonCases[] = {
    // clang-format off
    {10, 0, 1, true, 0U, 0, {4, 1, 7, 5, 3, 9, 0, 8, 6, 2}},
    {10, 0, 2, true, 0U, 0, {4, 7, 3, 0, 6}},
    {10, 1, 2, true, 0U, 0, {1, 5, 9, 8, 2}},
    {10, 0, 3, true, 0U, 0, {4, 5, 0, 2}},
    {10, 1, 3, true, 0U, 0, {1, 3, 8, 4}},
    {10, 2, 3, true, 0U, 0, {7, 9, 6, 1}},
    {10, 0, 4, true, 0U, 1, {5, 0, 7}},
    {10, 1, 4, true, 0U, 1, {6, 8, 4}},
    {10, 2, 4, true, 0U, 1, {1, 9, 5}},
    {10, 3, 4, true, 0U, 1, {2, 3, 6}},
    {23, 0, 4, true, 7U, 3, {10, 15, 9, 17, 8, 4}},
    {23, 1, 4, true, 7U, 3, {2, 16, 18, 13, 6, 14}},
    {23, 2, 4, true, 7U, 3, {20, 7, 22, 3, 12, 1}},
    {23, 3, 4, true, 7U, 3, {0, 19, 5, 11, 21, 10}},
    {3, 0, 8, true, 0U, 0, {2}},
    {3, 1, 8, true, 0U, 0, {0}},
    {3, 2, 8, true, 0U, 0, {1}},
    {3, 3, 8, true, 0U, 0, {2}},
    {3, 4, 8, true, 0U, 0, {0}},
    {3, 5, 8, true, 0U, 0, {1}},
    {3, 6, 8, true, 0U, 0, {2}},
    {3, 7, 8, true, 0U, 0, {0}},
    {12, 0, 3, false, 5U, 0, {0, 3, 6, 9}},
    {12, 1, 3, false, 5U, 0, {1, 4, 7, 10}},
    {12, 2, 3, false, 5U, 0, {2, 5, 8, 11}},
    {11, 0, 2, true, 4294967297U, 0, {0, 2, 7, 4, 1, 5}},
    {11, 1, 2, true, 4294967297U, 0, {10, 3, 6, 8, 9, 0}},
    // clang-format on
};

TEST(GlobalOrderTest, DealsWhatPythonsDistributedSamplerDeals) {
  for (const PythonCase& expected : kPythonCases) {
    SCOPED_TRACE(testing::Message() << "size " << expected.size << ", rank " << expected.rank
                                    << " of " << expected.world_size << ", seed " << expected.seed
                                    << ", epoch " << expected.epoch);
    const GlobalOrder order(expected.size, expected.seed, expected.epoch, expected.shuffle);
    for (const std::int64_t share : {1, 2, 5}) {
      EXPECT_EQ(Dealt(order, share * expected.world_size, expected.rank, expected.world_size),
                expected.indices);
    }
  }
}

TEST(GlobalOrderTest, DealsWhatPythonDealsOfAWholeDataSet) {
  const std::vector<std::int64_t> indices = Dealt(GlobalOrder(60000, 3, 5), 64, 2, 4);
  std::int64_t checksum = 0;
  std::int64_t place = 1;
  for (const std::int64_t index : indices) checksum += place++ * index;
  // Python: sum(i * v for i, v in enumerate(sampler, 1))
  EXPECT_EQ(checksum, 3378385776787);
  EXPECT_EQ(indices.size(), 15000u);
}

TEST(GlobalOrderTest, AnotherWorldSizeGoesOnExactlyWhereTheFirstStopped) {
  const GlobalOrder order(1003, /*seed=*/1, /*epoch=*/0);
  const auto undisturbed = Steps(order, 0, 24, 4);
  const std::int64_t position = order.From(0, 24, 0, 4).at(9).end_position;
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
  EXPECT_EQ(order.From(10, 4, 0, 1).steps, 0);
  EXPECT_EQ(order.StepsLeft(9, 4), 1);
}

TEST(GlobalOrderTest, WithoutShufflingTheOrderIsThatOfTheData) {
  const GlobalOrder order(6, /*seed=*/5, /*epoch=*/5, /*shuffle=*/false);
  EXPECT_EQ(order.At(0, 6, 1, 2).indices, (std::vector<std::int64_t>{1, 3, 5}));
}

TEST(GlobalOrderTest, APlanOutlivesItsOrder) {
  const BatchPlan plan = GlobalOrder(10, /*seed=*/0, /*epoch=*/0).From(0, 4, 0, 1);
  // As DistributedSampler deals them, above.
  EXPECT_EQ(plan.at(2).indices, (std::vector<std::int64_t>{6, 2}));
  EXPECT_EQ(plan.at(0).indices, (std::vector<std::int64_t>{4, 1, 7, 5}));
}

// The order of a billion windows took 8 GB, and the plan of an epoch as much again.
TEST(GlobalOrderTest, ATrillionSamplesTakeNoMemory) {
  constexpr std::int64_t kSize = 1'000'000'000'007;
  const GlobalOrder order(kSize, /*seed=*/1, /*epoch=*/2);
  const BatchPlan plan = order.From(/*position=*/4096, /*batch=*/4096, /*rank=*/1, 2);
  EXPECT_EQ(plan.steps, (kSize + 4095) / 4096 - 1);
  std::set<std::int64_t> seen;
  for (const std::int64_t step : {std::int64_t{0}, plan.steps / 2, plan.steps - 1}) {
    const RankBatch batch = plan.at(step);
    for (const std::int64_t index : batch.indices) {
      EXPECT_GE(index, 0);
      EXPECT_LT(index, kSize);
      EXPECT_TRUE(seen.insert(index).second);
    }
  }
  EXPECT_EQ(plan.at(plan.steps - 1).end_position, kSize);
}

TEST(GlobalOrderTest, LargeDataSetsAreShuffledAnewInEachEpoch) {
  const auto first = [](std::uint64_t seed, std::int64_t epoch) {
    return GlobalOrder(kLargestStoredOrder + 1, seed, epoch).At(0, 64, 0, 1).indices;
  };
  EXPECT_EQ(first(3, 1), first(3, 1));
  EXPECT_NE(first(3, 1), first(3, 2));
  EXPECT_NE(first(3, 1), first(4, 1));
}

}  // namespace
}  // namespace muster::trainer
