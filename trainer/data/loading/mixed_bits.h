// Pseudorandom numbers that depend only on their arguments: the same on every rank and thread, and
// after every restart.
#pragma once

#include <cstdint>

namespace muster::trainer {

// Returns a number each bit of which depends on every bit of `x`.
std::uint64_t MixedBits(std::uint64_t x);

// The same for three arguments, for example to draw how a sample is augmented.
std::uint64_t MixedBits(std::uint64_t seed, std::int64_t epoch, std::int64_t index);

}  // namespace muster::trainer
