#include "trainer/data/loading/permutation.h"

#include <numeric>
#include <random>
#include <utility>

namespace muster::trainer {

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

}  // namespace muster::trainer
