#include "trainer/data/samples/image_folder.h"

#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include "test/trainer/encoded.h"

namespace muster::trainer {
namespace {

using Pixels = std::vector<std::uint8_t>;

absl::StatusOr<RgbImage> DecodeFile(const std::string& file) {
  return DecodePng(Bytes(file), static_cast<std::int64_t>(file.size()));
}

Pixels DecodedPixels(const std::string& file) {
  const auto image = DecodeFile(file);
  EXPECT_TRUE(image.ok()) << image.status();
  return image.ok() ? image->pixels : Pixels();
}

std::string WhyNotPng(const std::string& file) {
  const auto image = DecodeFile(file);
  EXPECT_EQ(image.status().code(), absl::StatusCode::kInvalidArgument) << image.status();
  return std::string(image.status().message());
}

TEST(PngTest, ColorsComeBackExactly) {
  const RgbImage image = PatternImage(11, 17);
  const std::string file = EncodePng(image);
  EXPECT_TRUE(LooksLikePng(Bytes(file), static_cast<std::int64_t>(file.size())));
  EXPECT_EQ(DecodedPixels(file), image.pixels);
  EXPECT_EQ(DecodedPixels(EncodePng(11, 17, {.interlaced = true}, image.pixels)), image.pixels);
}

TEST(PngTest, GreyHasThreeEqualColors) {
  EXPECT_EQ(DecodedPixels(EncodePng(1, 3, {.color_type = PNG_COLOR_TYPE_GRAY}, {0, 77, 255})),
            (Pixels{0, 0, 0, 77, 77, 77, 255, 255, 255}));
  // One bit for each pixel: white, black, white, white.
  EXPECT_EQ(DecodedPixels(EncodePng(1, 4, {.color_type = PNG_COLOR_TYPE_GRAY, .bits = 1}, {0xb0})),
            (Pixels{255, 255, 255, 0, 0, 0, 255, 255, 255, 255, 255, 255}));
}

TEST(PngTest, APaletteBecomesItsColors) {
  const PngForm form = {
      .color_type = PNG_COLOR_TYPE_PALETTE, .bits = 2, .palette = {1, 2, 3, 40, 50, 60, 7, 8, 9}};
  // Colors 1, 0, 2, 1, two bits each.
  EXPECT_EQ(DecodedPixels(EncodePng(1, 4, form, {0x49})),
            (Pixels{40, 50, 60, 1, 2, 3, 7, 8, 9, 40, 50, 60}));
}

TEST(PngTest, SixteenBitsBecomeEight) {
  EXPECT_EQ(DecodedPixels(EncodePng(1, 2, {.color_type = PNG_COLOR_TYPE_GRAY, .bits = 16},
                                    {0x40, 0x40, 0xff, 0xff})),
            (Pixels{0x40, 0x40, 0x40, 0xff, 0xff, 0xff}));
  EXPECT_EQ(DecodedPixels(EncodePng(1, 1, {.bits = 16}, {0x10, 0x10, 0x80, 0x80, 0, 0})),
            (Pixels{0x10, 0x80, 0}));
}

TEST(PngTest, TransparencyIsDropped) {
  EXPECT_EQ(DecodedPixels(EncodePng(1, 2, {.color_type = PNG_COLOR_TYPE_RGB_ALPHA},
                                    {10, 20, 30, 0, 40, 50, 60, 128})),
            (Pixels{10, 20, 30, 40, 50, 60}));
  EXPECT_EQ(DecodedPixels(EncodePng(1, 1, {.color_type = PNG_COLOR_TYPE_GRAY_ALPHA}, {99, 1})),
            (Pixels{99, 99, 99}));
}

TEST(PngTest, ATruncatedFileIsRefusedWhereverItEnds) {
  const std::string file = EncodePng(PatternImage(40, 40));
  // Behind the image's data there are its checksum and the chunk IEND, 16 bytes.
  for (std::size_t size = 8; size < file.size() - 20; size += 37) {
    EXPECT_EQ(WhyNotPng(file.substr(0, size)).substr(0, 22), "truncated or damaged: ");
  }
}

TEST(PngTest, AChangedByteIsFoundByItsChecksum) {
  const std::string file = EncodePng(PatternImage(40, 40));
  for (std::size_t at = file.find("IDAT") + 4; at < file.size() - 20; at += 101) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    WhyNotPng(changed);
  }
}

TEST(PngTest, AnAbsurdSizeIsRefusedBeforeThereIsMemoryForIt) {
  // A header of its own: 20000 x 20000 pixels, 1.2 GB, in a file that has data for one row.
  std::string file = EncodePng(PlainImage(1, 1, 1, 2, 3));
  file.replace(16, 8, std::string("\0\0\x4e\x20\0\0\x4e\x20", 8));
  const png_uint_32 sum =
      static_cast<png_uint_32>(crc32(0, reinterpret_cast<const Bytef*>(file.data()) + 12, 17));
  for (int i = 0; i < 4; ++i) file[29 + i] = static_cast<char>(sum >> (24 - 8 * i));
  EXPECT_EQ(WhyNotPng(file),
            "it claims 20000 x 20000 pixels, and at most 67108864 are read; make it smaller");
}

}  // namespace
}  // namespace muster::trainer
