// Random variation of training images: mirroring, and shifting by a few pixels.
#pragma once

#include <cstdint>

namespace muster::trainer {

struct AugmentationOptions {
  // Mirror left and right with probability 1/2 (torchvision's RandomHorizontalFlip).
  bool flip = false;
  // Pad the image with this many black pixels on each side and crop it at a random place
  // (torchvision's RandomCrop(size, padding)); 0: do not.
  int crop_padding = 0;
  std::uint64_t seed = 0;
};

// The variation of one image. Pixel (y, x) of the result is the original's pixel (y + down,
// mirrored ? width - 1 - (x + right) : x + right), or black if that is outside the image.
struct ImageVariation {
  bool mirrored = false;
  int down = 0;   // in [-crop_padding, crop_padding]
  int right = 0;  // in [-crop_padding, crop_padding]

  bool operator==(const ImageVariation&) const = default;
};

// The variation of image `index` in `epoch`. Depends only on the arguments, not on rank, thread,
// batch or world size, so runs that restart or change size see the same images.
ImageVariation VariationOf(const AugmentationOptions& options, std::int64_t epoch,
                           std::int64_t index);

}  // namespace muster::trainer
