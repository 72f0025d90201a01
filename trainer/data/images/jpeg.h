// Decodes JPEG by libjpeg-turbo, through its TurboJPEG API: that one returns errors, where
// libjpeg's own jumps out of C++ functions by longjmp.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

#include "trainer/data/images/rgb_image.h"

namespace muster::trainer {

// Whether the `size` bytes begin as a JPEG file does.
bool LooksLikeJpeg(const std::uint8_t* bytes, std::int64_t size);

// Decodes the JPEG file that is `bytes`. Grey and CMYK become RGB; CMYK is taken to be inverted, as
// Adobe's programs write it and Pillow reads it. Color profiles and EXIF's orientation are ignored,
// as torchvision does. kInvalidArgument and why, a part of a sentence ("truncated or damaged:
// ..."), when the file is not whole, is not a JPEG, or is larger than CheckImageSize() allows. A
// file whose only fault is stray bytes between two parts (ImageNet has some) is decoded. Any
// thread.
absl::StatusOr<RgbImage> DecodeJpeg(const std::uint8_t* bytes, std::int64_t size);

}  // namespace muster::trainer
