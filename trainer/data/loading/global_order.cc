#include "trainer/data/loading/global_order.h"

#include <algorithm>

#include "trainer/data/loading/permutation.h"

namespace muster::trainer {

GlobalOrder::GlobalOrder(std::int64_t dataset_size, std::uint64_t seed, std::int64_t epoch,
                         bool shuffle)
    : size_(dataset_size) {
  if (!shuffle) return;
  if (dataset_size > kLargestStoredOrder) {
    order_ = KeyedPermutation(dataset_size, seed, epoch);
  } else {
    order_ = std::make_shared<const std::vector<std::int64_t>>(
        RandomPermutation(dataset_size, seed + static_cast<std::uint64_t>(epoch)));
  }
}

std::int64_t GlobalOrder::Sample(std::int64_t place) const {
  if (const auto* stored = std::get_if<Stored>(&order_)) {
    return (**stored)[static_cast<std::size_t>(place)];
  }
  if (const auto* keyed = std::get_if<KeyedPermutation>(&order_)) return keyed->At(place);
  return place;
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
    mine.indices.push_back(Sample(place % size()));
  }
  return mine;
}

BatchPlan GlobalOrder::From(std::int64_t position, std::int64_t batch, int rank,
                            int world_size) const {
  return {.steps = StepsLeft(position, batch),
          .at = [order = *this, position, batch, rank, world_size](std::int64_t step) {
            return order.At(position + step * batch, batch, rank, world_size);
          }};
}

}  // namespace muster::trainer
