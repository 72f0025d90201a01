#include "trainer/data/loading/global_order.h"

#include <algorithm>
#include <numeric>

#include "trainer/data/loading/permutation.h"

namespace muster::trainer {

GlobalOrder::GlobalOrder(std::int64_t dataset_size, std::uint64_t seed, std::int64_t epoch,
                         bool shuffle) {
  if (shuffle) {
    order_ = RandomPermutation(dataset_size, seed + static_cast<std::uint64_t>(epoch));
  } else {
    order_.resize(static_cast<std::size_t>(dataset_size));
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
  }
}

std::int64_t GlobalOrder::StepsLeft(std::int64_t position, std::int64_t batch) const {
  return (size() - position + batch - 1) / batch;
}

RankBatch GlobalOrder::At(std::int64_t position, std::int64_t batch, int rank,
                          int world_size) const {
  const std::int64_t end = std::min(position + batch, size());
  RankBatch mine;
  mine.global = end - position;
  mine.end_position = end;
  const std::int64_t count = (mine.global + world_size - 1) / world_size;
  mine.indices.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = position + rank + i * world_size;
    if (place < end) ++mine.own;
    // Places past the end start again from the beginning, as often as it takes: that is how
    // DistributedSampler fills up an epoch.
    mine.indices.push_back(order_[static_cast<std::size_t>(place % size())]);
  }
  return mine;
}

std::vector<RankBatch> GlobalOrder::From(std::int64_t position, std::int64_t batch, int rank,
                                         int world_size) const {
  std::vector<RankBatch> steps;
  steps.reserve(static_cast<std::size_t>(StepsLeft(position, batch)));
  while (position < size()) {
    steps.push_back(At(position, batch, rank, world_size));
    position = steps.back().end_position;
  }
  return steps;
}

}  // namespace muster::trainer
