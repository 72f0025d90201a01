#include "trainer/data/loading/augmentation.h"

namespace muster::trainer {
namespace {

// SplitMix64's finalizer (Steele, Lea, Flood 2014): every bit of the result depends on every bit of
// `x`.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// In [-limit, limit]. 32 random bits over at most some hundred values: no bias that matters.
int Shift(std::uint32_t bits, int limit) {
  return static_cast<int>(bits % static_cast<std::uint32_t>(2 * limit + 1)) - limit;
}

}  // namespace

std::uint64_t MixedBits(std::uint64_t seed, std::int64_t epoch, std::int64_t index) {
  return Mix(Mix(Mix(seed) ^ static_cast<std::uint64_t>(epoch)) ^
             static_cast<std::uint64_t>(index));
}

ImageVariation VariationOf(const AugmentationOptions& options, std::int64_t epoch,
                           std::int64_t index) {
  // Each choice has bits of its own, so that turning one on does not change the other.
  const std::uint64_t bits = MixedBits(options.seed, epoch, index);
  const std::uint64_t more = Mix(bits);
  ImageVariation variation;
  variation.mirrored = options.flip && (bits & 1) != 0;
  if (options.crop_padding > 0) {
    variation.down = Shift(static_cast<std::uint32_t>(more), options.crop_padding);
    variation.right = Shift(static_cast<std::uint32_t>(more >> 32), options.crop_padding);
  }
  return variation;
}

}  // namespace muster::trainer
