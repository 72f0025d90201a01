// Images for tests, and files made of them by the libraries that will read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/samples/image_samples.h"

namespace muster::trainer {

// An image with a value of its own for each pixel and color.
RgbImage PatternImage(std::int64_t height, std::int64_t width);

// An image that changes slowly from pixel to pixel, as photographs do.
RgbImage SmoothImage(std::int64_t height, std::int64_t width);

// An image of one color.
RgbImage PlainImage(std::int64_t height, std::int64_t width, std::uint8_t red, std::uint8_t green,
                    std::uint8_t blue);

// The bytes of a JPEG file. kProgressive has several scans; kCmyk holds inverted colors, without
// black.
enum class JpegKind { kColor, kGrey, kProgressive, kCmyk };
std::string EncodeJpeg(const RgbImage& image, JpegKind kind = JpegKind::kColor, int quality = 95);

// The bytes of a PNG file of `height` rows, each of which is what PNG wants at that color type
// (PNG_COLOR_TYPE_...) and number of bits. `palette` holds three bytes for each color. Interlaced
// ones come in seven passes.
struct PngForm {
  int color_type = 2;  // PNG_COLOR_TYPE_RGB
  int bits = 8;
  std::vector<std::uint8_t> palette;
  bool interlaced = false;
};
std::string EncodePng(std::int64_t height, std::int64_t width, const PngForm& form,
                      const std::vector<std::uint8_t>& rows);
// The same for `image` as it is.
std::string EncodePng(const RgbImage& image);

// For the std::uint8_t functions under test.
inline const std::uint8_t* Bytes(const std::string& file) {
  return reinterpret_cast<const std::uint8_t*>(file.data());
}

}  // namespace muster::trainer
