#include "trainer/data/loading/mixed_bits.h"

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

}  // namespace muster::trainer
