// The only source of randomness in a history's plan: the same seed gives the same plan. The history
// itself comes from real processes and is different each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>

namespace muster::linearizability {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : engine_(seed) {}

  // 0 to n-1. The modulo bias does not matter for n this small.
  int Below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
  // Both ends inclusive.
  int Between(int least, int most) { return least + Below(most - least + 1); }

  // True with probability n / of.
  bool Happens(int n, int of) { return Below(of) < n; }

  template <typename Choices>
  const auto& OneOf(const Choices& choices) {
    return choices[static_cast<std::size_t>(Below(static_cast<int>(std::size(choices))))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace muster::linearizability
