// Decodes PNG by libpng, through its simplified API: that one returns errors, where the other jumps
// out of C++ functions by longjmp.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

#include "trainer/data/images/rgb_image.h"

namespace muster::trainer {

// Whether the `size` bytes begin as a PNG file does.
bool LooksLikePng(const std::uint8_t* bytes, std::int64_t size);

// Decodes the PNG file that is `bytes`. Grey and palettes become RGB, 16 bits become 8, and
// transparency is dropped without mixing in a background, as torchvision does. A file with a gamma
// of its own (gAMA) is converted to sRGB's; without one it is taken as it is. kInvalidArgument and
// why, a part of a sentence ("truncated or damaged: ..."), when rows are missing, a checksum is
// wrong, it is not a PNG, or it is larger than CheckImageSize() allows. Any thread.
absl::StatusOr<RgbImage> DecodePng(const std::uint8_t* bytes, std::int64_t size);

}  // namespace muster::trainer
