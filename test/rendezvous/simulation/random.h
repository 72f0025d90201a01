// The simulation's only source of randomness. Unlike std's distributions, it gives the same numbers
// with every standard library, so a seed means the same run everywhere.
#pragma once

#include <cstdint>
#include <random>

#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // 0 to n-1. The modulo bias does not matter for n this small.
  std::int64_t Below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }

  // True with probability n / of.
  bool Chance(std::int64_t n, std::int64_t of) { return Below(of) < n; }

  // A duration in whole milliseconds, both ends inclusive.
  Duration Between(Duration shortest, Duration longest) {
    using std::chrono::milliseconds;
    return shortest + milliseconds(Below((longest - shortest) / milliseconds(1) + 1));
  }

  // A random element of an array or vector.
  template <typename Choices>
  const auto& OneOf(const Choices& choices) {
    return choices[static_cast<std::size_t>(Below(static_cast<std::int64_t>(std::size(choices))))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace muster::rendezvous
