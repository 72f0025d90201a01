#include "trainer/data/samples/sample_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace muster::trainer {

// SplitMix64's finalizer (Steele, Lea, Flood 2014).
std::uint64_t MixedBits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t MixedBits(std::uint64_t seed, std::int64_t epoch, std::int64_t index) {
  return MixedBits(MixedBits(MixedBits(seed) ^ static_cast<std::uint64_t>(epoch)) ^
                   static_cast<std::uint64_t>(index));
}

std::vector<std::int64_t> RandomPermutation(std::int64_t size, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::mt19937 generator(static_cast<std::uint32_t>(seed));
  for (std::int64_t i = 0; i < size - 1; ++i) {
    const auto offset =
        static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(size - i));
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(i + offset)]);
  }
  return order;
}

KeyedPermutation::KeyedPermutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch)
    : size_(size) {
  // Each half needs at least one bit, or a round would change nothing.
  const auto largest = static_cast<std::uint64_t>(size - 1);
  const int bits = std::max(2, static_cast<int>(std::bit_width(largest)));
  high_bits_ = bits / 2;
  low_bits_ = bits - high_bits_;
  for (int round = 0; round < kRounds; ++round) {
    // Negative, unlike the indices of samples' augmentations.
    keys_[static_cast<std::size_t>(round)] = MixedBits(seed, epoch, -1 - round);
  }
}

std::int64_t KeyedPermutation::At(std::int64_t place) const {
  auto x = static_cast<std::uint64_t>(place);
  // At most half of all numbers are too large, so two steps are enough on average. The walk
  // terminates: it follows a cycle that contains `place`.
  do {
    x = Permute(x);
  } while (x >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(x);
}

std::uint64_t KeyedPermutation::Permute(std::uint64_t x) const {
  int high_bits = high_bits_;
  int low_bits = low_bits_;
  for (const std::uint64_t key : keys_) {
    const std::uint64_t low = x & ((std::uint64_t{1} << low_bits) - 1);
    const std::uint64_t high = x >> low_bits;
    const std::uint64_t mixed = MixedBits(key ^ low) & ((std::uint64_t{1} << high_bits) - 1);
    x = low << high_bits | (high ^ mixed);
    std::swap(high_bits, low_bits);
  }
  return x;
}

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
    // Positions past the end wrap around, as often as necessary: DistributedSampler pads an epoch
    // in this way.
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

std::vector<bool> HoldOut(std::int64_t size, double share, std::uint64_t seed) {
  const std::int64_t wanted = std::llround(static_cast<double>(size) * share);
  const std::int64_t count = std::clamp<std::int64_t>(wanted, 1, size - 1);
  const std::vector<std::int64_t> order = RandomPermutation(size, seed);
  std::vector<bool> held_out(static_cast<std::size_t>(size), false);
  for (std::int64_t i = 0; i < count; ++i) {
    held_out[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  }
  return held_out;
}

namespace {

// In [-limit, limit]. 32 random bits over a few hundred values: the bias is negligible.
int Shift(std::uint32_t bits, int limit) {
  return static_cast<int>(bits % static_cast<std::uint32_t>(2 * limit + 1)) - limit;
}

}  // namespace

ImageVariation VariationOf(const AugmentationOptions& options, std::int64_t epoch,
                           std::int64_t index) {
  // Each choice has its own bits, so that enabling one does not change the other.
  const std::uint64_t bits = MixedBits(options.seed, epoch, index);
  const std::uint64_t more = MixedBits(bits);
  ImageVariation variation;
  variation.mirrored = options.flip && (bits & 1) != 0;
  if (options.crop_padding > 0) {
    variation.down = Shift(static_cast<std::uint32_t>(more), options.crop_padding);
    variation.right = Shift(static_cast<std::uint32_t>(more >> 32), options.crop_padding);
  }
  return variation;
}

}  // namespace muster::trainer
