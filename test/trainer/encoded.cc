#include "test/trainer/encoded.h"

#include <png.h>
#include <turbojpeg.h>

#include <cstdlib>

namespace muster::trainer {
namespace {

void Keep(png_structp png, png_bytep bytes, png_size_t size) {
  static_cast<std::string*>(png_get_io_ptr(png))
      ->append(reinterpret_cast<const char*>(bytes), size);
}

}  // namespace

RgbImage PatternImage(std::int64_t height, std::int64_t width) {
  RgbImage image{.height = height, .width = width, .pixels = {}};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t color = 0; color < 3; ++color) {
        image.pixels.push_back(
            static_cast<std::uint8_t>((y * 37 + x * 59 + color * 101) * (x + 3)));
      }
    }
  }
  return image;
}

RgbImage SmoothImage(std::int64_t height, std::int64_t width) {
  RgbImage image{.height = height, .width = width, .pixels = {}};
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      image.pixels.push_back(static_cast<std::uint8_t>(255 * y / height));
      image.pixels.push_back(static_cast<std::uint8_t>(255 * x / width));
      image.pixels.push_back(static_cast<std::uint8_t>(127 * (y + x) / (height + width)));
    }
  }
  return image;
}

RgbImage PlainImage(std::int64_t height, std::int64_t width, std::uint8_t red, std::uint8_t green,
                    std::uint8_t blue) {
  RgbImage image{.height = height, .width = width, .pixels = {}};
  for (std::int64_t i = 0; i < height * width; ++i) {
    image.pixels.insert(image.pixels.end(), {red, green, blue});
  }
  return image;
}

std::string EncodeJpeg(const RgbImage& image, JpegKind kind, int quality) {
  const tjhandle encoder = tjInitCompress();
  std::vector<std::uint8_t> pixels = image.pixels;
  int format = TJPF_RGB;
  if (kind == JpegKind::kCmyk) {
    format = TJPF_CMYK;
    pixels.clear();
    for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
      pixels.insert(pixels.end(), &image.pixels[i], &image.pixels[i] + 3);
      pixels.push_back(255);
    }
  }
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  if (tjCompress2(encoder, pixels.data(), static_cast<int>(image.width), /*pitch=*/0,
                  static_cast<int>(image.height), format, &bytes, &size,
                  kind == JpegKind::kGrey ? TJSAMP_GRAY : TJSAMP_444, quality,
                  kind == JpegKind::kProgressive ? TJFLAG_PROGRESSIVE : 0) != 0) {
    std::abort();
  }
  std::string file(reinterpret_cast<const char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(encoder);
  return file;
}

// Without an error handler of its own, libpng aborts, as befits a mistake in a test.
std::string EncodePng(std::int64_t height, std::int64_t width, const PngForm& form,
                      const std::vector<std::uint8_t>& rows) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &file, Keep, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height),
               form.bits, form.color_type,
               form.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> colors;
  for (std::size_t i = 0; i < form.palette.size(); i += 3) {
    colors.push_back({form.palette[i], form.palette[i + 1], form.palette[i + 2]});
  }
  if (!colors.empty()) png_set_PLTE(png, info, colors.data(), static_cast<int>(colors.size()));
  png_write_info(png, info);
  const std::size_t stride = rows.size() / static_cast<std::size_t>(height);
  std::vector<png_bytep> pointers;
  for (std::int64_t y = 0; y < height; ++y) {
    pointers.push_back(const_cast<png_bytep>(rows.data() + static_cast<std::size_t>(y) * stride));
  }
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::string EncodePng(const RgbImage& image) {
  return EncodePng(image.height, image.width, {}, image.pixels);
}

}  // namespace muster::trainer
