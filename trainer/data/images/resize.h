// Brings images of any size to a square of one size.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/images/rgb_image.h"

namespace muster::trainer {

// The middle of `image` as a square of `side` x `side` pixels: what torchvision's Resize(side) and
// CenterCrop(side) make of a Pillow image, to the last bit. The shorter side becomes `side` and the
// longer one as many times that (rounded down) as it was; then the middle is cut out.
//
// Resizing is Pillow's BILINEAR, first across, then down, each rounded to whole numbers. A pixel of
// the result is a weighted mean of the pixels around its place in the original. The weights fall
// evenly to 0 at a distance of one pixel, which is bilinear interpolation; when the image shrinks
// by a factor f, at a distance of f pixels, so all pixels count and nothing is aliased.
//
// Returns 3 x side x side bytes, all red ones first, then green, then blue. `image` must not be
// empty, and `side` must be at least 1. Only what the square needs is computed. Any thread.
std::vector<std::uint8_t> ResizedSquare(const RgbImage& image, std::int64_t side);

}  // namespace muster::trainer
