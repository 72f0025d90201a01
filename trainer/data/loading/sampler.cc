#include "trainer/data/loading/sampler.h"

#include <algorithm>
#include <numeric>

#include "trainer/data/loading/permutation.h"

namespace muster::trainer {

std::int64_t DistributedSampler::samples_per_rank() const {
  const std::int64_t size = options_.dataset_size;
  const std::int64_t world = options_.world_size;
  return options_.drop_last ? size / world : (size + world - 1) / world;
}

std::int64_t DistributedSampler::OwnAmongFirst(std::int64_t count) const {
  // Of the places rank, rank + W, ... those below dataset_size are dealt for the first time.
  const std::int64_t world = options_.world_size;
  const std::int64_t own = (options_.dataset_size - options_.rank + world - 1) / world;
  return std::clamp<std::int64_t>(own, 0, std::min(count, samples_per_rank()));
}

std::vector<std::int64_t> DistributedSampler::Indices() const {
  const std::int64_t size = options_.dataset_size;
  std::vector<std::int64_t> order;
  if (options_.shuffle) {
    order = RandomPermutation(size, options_.seed + static_cast<std::uint64_t>(epoch_));
  } else {
    order.resize(static_cast<std::size_t>(size));
    std::iota(order.begin(), order.end(), std::int64_t{0});
  }
  std::vector<std::int64_t> indices;
  indices.reserve(static_cast<std::size_t>(samples_per_rank()));
  for (std::int64_t i = 0; i < samples_per_rank(); ++i) {
    // Places past the end start again from the beginning, as often as it takes.
    indices.push_back(
        order[static_cast<std::size_t>((options_.rank + i * options_.world_size) % size)]);
  }
  return indices;
}

}  // namespace muster::trainer
