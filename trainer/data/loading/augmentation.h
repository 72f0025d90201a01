// How images are varied while training: mirrored, and shifted by a few pixels.
#pragma once

#include <cstdint>

namespace muster::trainer {

struct AugmentationOptions {
  // Mirror left and right, every other time (torchvision's RandomHorizontalFlip).
  bool flip = false;
  // Put this many black pixels around the image and cut it out again at a random place
  // (torchvision's RandomCrop(size, padding)); 0: do not.
  int crop_padding = 0;
  std::uint64_t seed = 0;
};

// What happens to one image. The pixel at (y, x) of the result is the original's at
// (y + down, mirrored ? width - 1 - (x + right) : x + right), or black outside of it.
struct ImageVariation {
  bool mirrored = false;
  int down = 0;   // in [-crop_padding, crop_padding]
  int right = 0;  // in [-crop_padding, crop_padding]

  bool operator==(const ImageVariation&) const = default;
};

// A function of its arguments alone: the same whatever rank, thread, batch or world size, so that
// restarts and other world sizes see the same images.
ImageVariation VariationOf(const AugmentationOptions& options, std::int64_t epoch,
                           std::int64_t index);

// A number that depends on all three and looks random: what other variations draw from.
std::uint64_t MixedBits(std::uint64_t seed, std::int64_t epoch, std::int64_t index);

}  // namespace muster::trainer
