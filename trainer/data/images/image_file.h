// Reads an image from a file.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "trainer/data/images/rgb_image.h"

namespace muster::trainer {

// Reads and decodes the JPEG or PNG file at `path` (DecodeJpeg, DecodePng); its first bytes, not
// its name, tell which. kInvalidArgument and one sentence that names the file when it cannot be
// read or is not a whole image. Throws std::bad_alloc. Any thread.
absl::StatusOr<RgbImage> ReadImage(const std::string& path);

}  // namespace muster::trainer
