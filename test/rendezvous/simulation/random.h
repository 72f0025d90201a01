// The simulation's only source of chance. Unlike the distributions of std, the numbers drawn here
// are the same with every standard library, so a seed means the same run everywhere.
#pragma once

#include <cstdint>
#include <random>

#include "rendezvous/core/types.h"

namespace muster::rendezvous {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // 0 to n-1. The bias of a modulo does not matter for n this small.
  std::int64_t Below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }

  // True n times in `of`.
  bool Chance(std::int64_t n, std::int64_t of) { return Below(of) < n; }

  // A time of whole milliseconds, both ends included.
  Duration Between(Duration shortest, Duration longest) {
    using std::chrono::milliseconds;
    return shortest + milliseconds(Below((longest - shortest) / milliseconds(1) + 1));
  }

  // One of the elements of an array or vector.
  template <typename Choices>
  const auto& OneOf(const Choices& choices) {
    return choices[static_cast<std::size_t>(Below(static_cast<std::int64_t>(std::size(choices))))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace muster::rendezvous
