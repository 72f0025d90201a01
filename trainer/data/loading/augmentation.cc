#include "trainer/data/loading/augmentation.h"

#include "trainer/data/loading/mixed_bits.h"

namespace muster::trainer {
namespace {

// In [-limit, limit]. 32 random bits over at most some hundred values: no bias that matters.
int Shift(std::uint32_t bits, int limit) {
  return static_cast<int>(bits % static_cast<std::uint32_t>(2 * limit + 1)) - limit;
}

}  // namespace

ImageVariation VariationOf(const AugmentationOptions& options, std::int64_t epoch,
                           std::int64_t index) {
  // Each choice has bits of its own, so that turning one on does not change the other.
  const std::uint64_t bits = MixedBits(options.seed, epoch, index);
  const std::uint64_t more = MixedBits(bits);
  ImageVariation variation;
  variation.mirrored = options.flip && (bits & 1) != 0;
  if (options.crop_padding > 0) {
    variation.down = Shift(static_cast<std::uint32_t>(more), options.crop_padding);
    variation.right = Shift(static_cast<std::uint32_t>(more >> 32), options.crop_padding);
  }
  return variation;
}

}  // namespace muster::trainer
