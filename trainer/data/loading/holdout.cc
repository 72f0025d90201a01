#include "trainer/data/loading/holdout.h"

#include <algorithm>
#include <cmath>

#include "trainer/data/loading/permutation.h"

namespace muster::trainer {

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

}  // namespace muster::trainer
