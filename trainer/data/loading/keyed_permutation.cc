#include "trainer/data/loading/keyed_permutation.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "trainer/data/loading/mixed_bits.h"

namespace muster::trainer {

KeyedPermutation::KeyedPermutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch)
    : size_(size) {
  // Both parts have a bit at least, or a round would change nothing.
  const auto largest = static_cast<std::uint64_t>(size - 1);
  const int bits = std::max(2, static_cast<int>(std::bit_width(largest)));
  high_bits_ = bits / 2;
  low_bits_ = bits - high_bits_;
  for (int round = 0; round < kRounds; ++round) {
    // Below 0, where no sample has its variations from.
    keys_[static_cast<std::size_t>(round)] = MixedBits(seed, epoch, -1 - round);
  }
}

std::int64_t KeyedPermutation::At(std::int64_t place) const {
  auto x = static_cast<std::uint64_t>(place);
  // At most half of all numbers are too large, so two steps are enough on average. The walk ends:
  // it goes round a cycle that `place` itself is on.
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

}  // namespace muster::trainer
