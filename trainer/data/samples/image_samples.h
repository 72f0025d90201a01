// Images as raw bytes, with a class for each.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/samples/data_options.h"
#include "trainer/data/samples/sample_order.h"

namespace muster::trainer {

struct LabelledImages {
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t classes = 10;
  std::vector<std::uint8_t> pixels;  // count x channels x height x width
  std::vector<std::uint8_t> labels;  // count

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

// Converts bytes to normalized floats: the inner loop of loading images.

// Mean and standard deviation of each channel over all `images`, rounded to four decimals: the
// published values for MNIST (0.1307, 0.3081), Fashion-MNIST (0.2860, 0.3530) and CIFAR-10. A
// deviation of 0 becomes 1. `images` must not be empty.
Normalization MeasureNormalization(const LabelledImages& images);

// For each channel, the value of each of the 256 bytes: (byte / 255 - mean) / deviation, rounded to
// float32 after each of the three operations, as in torch. A table, because a lookup is faster than
// two divisions.
using NormalizedPixels = std::vector<std::array<float, 256>>;
NormalizedPixels MakeNormalizedPixels(const Normalization& norm);

// Prefetches image `index` into the cache for a later GatherImage. Images are read in random order,
// and cache misses would double the time.
void PrefetchImage(const LabelledImages& images, std::int64_t index);

// Applies `variation` to image `index`, normalizes it with `table`, and writes its channels x
// height x width values to `to`.
void GatherImage(const LabelledImages& images, const NormalizedPixels& table, std::int64_t index,
                 const ImageVariation& variation, float* to);

// A decoded image of any size.

// Red, green and blue of each pixel, 0 to 255, row by row: height x width x 3 bytes.
struct RgbImage {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;
};

// The most pixels that an image may have: 192 MiB as RGB. A file of a few kilobytes can claim far
// more, so decoders check before they allocate anything.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

// kInvalidArgument and the reason, if an image of that size must not be decoded.
inline absl::Status CheckImageSize(std::int64_t height, std::int64_t width) {
  if (height < 1 || width < 1) return absl::InvalidArgumentError("it has no pixels");
  if (width <= kMostPixels / height) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it claims ", width, " x ", height,
                                                 " pixels, and at most ", kMostPixels,
                                                 " are read; make it smaller"));
}

// Scales images of any size to squares of one size.

// The middle of `image` as a square of `side` x `side` pixels: bit for bit the result of
// torchvision's Resize(side) and CenterCrop(side) on a Pillow image. The shorter side becomes
// `side` and the longer one as many times that (rounded down) as it was; then the middle is cut
// out.
//
// Resizing is Pillow's BILINEAR, first across, then down, each rounded to integers. A pixel of the
// result is a weighted mean of the pixels around its position in the original. The weights fall
// linearly to 0 at a distance of one pixel, which is bilinear interpolation; when the image shrinks
// by a factor f, at a distance of f pixels, so all pixels count and nothing is aliased.
//
// Returns 3 x side x side bytes, all red ones first, then green, then blue. `image` must not be
// empty, and `side` must be at least 1. Only what the square needs is computed. Any thread.
std::vector<std::uint8_t> ResizedSquare(const RgbImage& image, std::int64_t side);

}  // namespace muster::trainer
