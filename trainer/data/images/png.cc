#include "trainer/data/images/png.h"

#include <png.h>

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::trainer {
namespace {

constexpr std::uint8_t kPngSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

// libpng's description of an image, with what it holds freed.
class PngReader {
 public:
  PngReader() {
    std::memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
  }
  ~PngReader() { png_image_free(&image); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  absl::Status Failure() const {
    return absl::InvalidArgumentError(absl::StrCat("truncated or damaged: ", image.message));
  }

  png_image image;
};

}  // namespace

bool LooksLikePng(const std::uint8_t* bytes, std::int64_t size) {
  return size >= static_cast<std::int64_t>(sizeof kPngSignature) &&
         std::memcmp(bytes, kPngSignature, sizeof kPngSignature) == 0;
}

absl::StatusOr<RgbImage> DecodePng(const std::uint8_t* bytes, std::int64_t size) {
  PngReader reader;
  png_image& png = reader.image;
  if (png_image_begin_read_from_memory(&png, bytes, static_cast<std::size_t>(size)) == 0) {
    return reader.Failure();
  }
  const absl::Status fits = CheckImageSize(png.height, png.width);
  if (!fits.ok()) return fits;
  // Otherwise 16 bits without a gamma are taken to be linear, which hardly any are.
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  const std::size_t count = std::size_t{png.height} * png.width;
  // With transparency asked for, colors come as they are in the file; without, libpng would mix
  // them with a background.
  const bool transparent = (png.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  png.format = transparent ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  RgbImage image{.height = png.height, .width = png.width, .pixels = {}};
  image.pixels.resize((transparent ? 4 : 3) * count);
  if (png_image_finish_read(&png, /*background=*/nullptr, image.pixels.data(), /*row_stride=*/0,
                            /*colormap=*/nullptr) == 0) {
    return reader.Failure();
  }
  if (transparent) {
    for (std::size_t i = 1; i < count; ++i) {
      std::memmove(&image.pixels[3 * i], &image.pixels[4 * i], 3);
    }
    image.pixels.resize(3 * count);
  }
  return image;
}

}  // namespace muster::trainer
