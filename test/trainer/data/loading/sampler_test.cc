// The sampler against what Python's DistributedSampler gives, and the property the loss curve
// stands on.
#include "trainer/data/loading/sampler.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::trainer {
namespace {

struct PythonCase {
  std::int64_t size;
  int rank;
  int world_size;
  bool shuffle;
  std::uint64_t seed;
  std::int64_t epoch;
  bool drop_last;
  std::vector<std::int64_t> indices;
};

// Made with Debian's python3-torch 1.13.1:
//   sampler = torch.utils.data.DistributedSampler(range(size), world_size, rank, shuffle=shuffle,
//                                                 seed=seed, drop_last=drop_last)
//   sampler.set_epoch(epoch); list(sampler)
const PythonCase kPythonCases[] = {
    // clang-format off
    {10, 0, 1, true, 0U, 0, false, {4, 1, 7, 5, 3, 9, 0, 8, 6, 2}},
    {10, 0, 2, true, 0U, 0, false, {4, 7, 3, 0, 6}},
    {10, 1, 2, true, 0U, 0, false, {1, 5, 9, 8, 2}},
    {10, 0, 3, true, 0U, 0, false, {4, 5, 0, 2}},
    {10, 1, 3, true, 0U, 0, false, {1, 3, 8, 4}},
    {10, 2, 3, true, 0U, 0, false, {7, 9, 6, 1}},
    {10, 0, 3, true, 0U, 0, true, {4, 5, 0}},
    {10, 1, 3, true, 0U, 0, true, {1, 3, 8}},
    {10, 2, 3, true, 0U, 0, true, {7, 9, 6}},
    {10, 0, 4, true, 0U, 1, false, {5, 0, 7}},
    {10, 1, 4, true, 0U, 1, false, {6, 8, 4}},
    {10, 2, 4, true, 0U, 1, false, {1, 9, 5}},
    {10, 3, 4, true, 0U, 1, false, {2, 3, 6}},
    {23, 0, 4, true, 7U, 3, false, {10, 15, 9, 17, 8, 4}},
    {23, 1, 4, true, 7U, 3, false, {2, 16, 18, 13, 6, 14}},
    {23, 2, 4, true, 7U, 3, false, {20, 7, 22, 3, 12, 1}},
    {23, 3, 4, true, 7U, 3, false, {0, 19, 5, 11, 21, 10}},
    {23, 0, 4, true, 7U, 3, true, {10, 15, 9, 17, 8}},
    {23, 1, 4, true, 7U, 3, true, {2, 16, 18, 13, 6}},
    {23, 2, 4, true, 7U, 3, true, {20, 7, 22, 3, 12}},
    {23, 3, 4, true, 7U, 3, true, {0, 19, 5, 11, 21}},
    {3, 0, 8, true, 0U, 0, false, {2}},
    {3, 1, 8, true, 0U, 0, false, {0}},
    {3, 2, 8, true, 0U, 0, false, {1}},
    {3, 3, 8, true, 0U, 0, false, {2}},
    {3, 4, 8, true, 0U, 0, false, {0}},
    {3, 5, 8, true, 0U, 0, false, {1}},
    {3, 6, 8, true, 0U, 0, false, {2}},
    {3, 7, 8, true, 0U, 0, false, {0}},
    {3, 0, 8, true, 0U, 0, true, {}},
    {3, 1, 8, true, 0U, 0, true, {}},
    {3, 2, 8, true, 0U, 0, true, {}},
    {3, 3, 8, true, 0U, 0, true, {}},
    {3, 4, 8, true, 0U, 0, true, {}},
    {3, 5, 8, true, 0U, 0, true, {}},
    {3, 6, 8, true, 0U, 0, true, {}},
    {3, 7, 8, true, 0U, 0, true, {}},
    {12, 0, 3, false, 5U, 0, false, {0, 3, 6, 9}},
    {12, 1, 3, false, 5U, 0, false, {1, 4, 7, 10}},
    {12, 2, 3, false, 5U, 0, false, {2, 5, 8, 11}},
    {11, 0, 2, true, 4294967297U, 0, false, {0, 2, 7, 4, 1, 5}},
    {11, 1, 2, true, 4294967297U, 0, false, {10, 3, 6, 8, 9, 0}},
    // clang-format on
};

TEST(DistributedSamplerTest, GivesPythonsIndices) {
  for (const PythonCase& expected : kPythonCases) {
    SCOPED_TRACE(testing::Message()
                 << "size " << expected.size << ", rank " << expected.rank << " of "
                 << expected.world_size << ", seed " << expected.seed << ", epoch "
                 << expected.epoch << ", drop_last " << expected.drop_last);
    DistributedSampler sampler({.dataset_size = expected.size,
                                .rank = expected.rank,
                                .world_size = expected.world_size,
                                .shuffle = expected.shuffle,
                                .seed = expected.seed,
                                .drop_last = expected.drop_last});
    sampler.SetEpoch(expected.epoch);
    EXPECT_EQ(sampler.Indices(), expected.indices);
    EXPECT_EQ(sampler.samples_per_rank(), static_cast<std::int64_t>(expected.indices.size()));
  }
}

TEST(DistributedSamplerTest, GivesPythonsIndicesForAWholeDataSet) {
  DistributedSampler sampler({.dataset_size = 60000, .rank = 2, .world_size = 4, .seed = 3});
  sampler.SetEpoch(5);
  const std::vector<std::int64_t> indices = sampler.Indices();
  std::int64_t checksum = 0;
  std::int64_t place = 1;
  for (const std::int64_t index : indices) checksum += place++ * index;
  // Python: sum(i * v for i, v in enumerate(sampler, 1))
  EXPECT_EQ(checksum, 3378385776787);
  EXPECT_EQ(indices.size(), 15000u);
}

// The k-th batch of all ranks together holds the same samples for every world size.
TEST(DistributedSamplerTest, GlobalBatchesDoNotDependOnTheWorldSize) {
  constexpr std::int64_t kSize = 1003;
  constexpr std::int64_t kBatch = 24;
  const auto batches = [](int world_size) {
    std::vector<std::multiset<std::int64_t>> result((kSize + kBatch - 1) / kBatch);
    for (int rank = 0; rank < world_size; ++rank) {
      DistributedSampler sampler(
          {.dataset_size = kSize, .rank = rank, .world_size = world_size, .seed = 1});
      sampler.SetEpoch(2);
      const std::vector<std::int64_t> indices = sampler.Indices();
      const std::int64_t own = sampler.OwnAmongFirst(sampler.samples_per_rank());
      for (std::int64_t i = 0; i < own; ++i) {
        result[static_cast<std::size_t>(i / (kBatch / world_size))].insert(
            indices[static_cast<std::size_t>(i)]);
      }
    }
    return result;
  };
  const auto alone = batches(1);
  EXPECT_EQ(alone.back().size(), 1003u % 24);
  for (const int world_size : {2, 3, 4, 6, 8, 12, 24}) EXPECT_EQ(batches(world_size), alone);
}

TEST(DistributedSamplerTest, RanksOwnEachSampleOnceWhenTheyOutnumberThem) {
  std::int64_t owned = 0;
  for (int rank = 0; rank < 8; ++rank) {
    const DistributedSampler sampler({.dataset_size = 3, .rank = rank, .world_size = 8});
    EXPECT_EQ(sampler.samples_per_rank(), 1);
    EXPECT_EQ(sampler.OwnAmongFirst(0), 0);
    EXPECT_EQ(sampler.OwnAmongFirst(1), rank < 3 ? 1 : 0);
    owned += sampler.OwnAmongFirst(1);
  }
  EXPECT_EQ(owned, 3);
}

TEST(DistributedSamplerTest, EachEpochHasAnOrderOfItsOwn) {
  DistributedSampler sampler({.dataset_size = 100, .seed = 1});
  const std::vector<std::int64_t> first = sampler.Indices();
  sampler.SetEpoch(1);
  EXPECT_NE(sampler.Indices(), first);
  sampler.SetEpoch(0);
  EXPECT_EQ(sampler.Indices(), first);
}

}  // namespace
}  // namespace muster::trainer
