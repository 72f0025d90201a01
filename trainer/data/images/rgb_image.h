// A decoded image of any size.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {

// Red, green and blue of each pixel, 0 to 255, row by row: height x width x 3 bytes.
struct RgbImage {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;
};

// The most pixels that an image may have: 192 MiB as RGB. A file of a few kilobytes can claim far
// more, so decoders ask before they allocate anything.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

// kInvalidArgument and why, when an image of that size is not to be decoded.
inline absl::Status CheckImageSize(std::int64_t height, std::int64_t width) {
  if (height < 1 || width < 1) return absl::InvalidArgumentError("it has no pixels");
  if (width <= kMostPixels / height) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it claims ", width, " x ", height,
                                                 " pixels, and at most ", kMostPixels,
                                                 " are read; make it smaller"));
}

}  // namespace muster::trainer
