// Which samples are kept for testing when the data does not say.
#pragma once

#include <cstdint>
#include <vector>

namespace muster::trainer {

// For each of `size` samples, whether it is held out: the first round(size * share) of a random
// permutation, but at least one, and never all. Depends on the arguments alone, so all ranks and
// all restarts agree. `size` must be at least 2, and `share` in [0, 1].
std::vector<bool> HoldOut(std::int64_t size, double share, std::uint64_t seed);

}  // namespace muster::trainer
