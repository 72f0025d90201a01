// The order of an epoch for data sets so large that it cannot be stored.
#pragma once

#include <array>
#include <cstdint>

namespace muster::trainer {

// A permutation of 0 to size - 1 drawn from `seed` and `epoch`, of which each element is computed
// on demand: a Feistel network over the next power of two, applied until the result is below `size`
// (cycle walking: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). Takes no
// memory. For very small sizes not all orders are equally likely. A plain value; methods may be
// called from any thread.
class KeyedPermutation {
 public:
  // `size` must be at least 1.
  KeyedPermutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);

  std::int64_t size() const { return size_; }

  // Returns the number at position `place`, in [0, size()).
  std::int64_t At(std::int64_t place) const;

 private:
  static constexpr int kRounds = 6;

  std::uint64_t Permute(std::uint64_t x) const;

  std::int64_t size_;
  // Sizes of the two halves of a number. They swap in each round, so kRounds is even.
  int high_bits_;
  int low_bits_;
  std::array<std::uint64_t, kRounds> keys_;
};

}  // namespace muster::trainer
