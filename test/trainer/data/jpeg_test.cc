#include "trainer/data/samples/image_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "test/trainer/encoded.h"

namespace muster::trainer {
namespace {

absl::StatusOr<RgbImage> Decode(const std::string& file) {
  return DecodeJpeg(Bytes(file), static_cast<std::int64_t>(file.size()));
}

std::string WhyNot(const std::string& file) {
  const auto image = Decode(file);
  EXPECT_EQ(image.status().code(), absl::StatusCode::kInvalidArgument) << image.status();
  return std::string(image.status().message());
}

int LargestDifference(const RgbImage& a, const RgbImage& b) {
  if (a.pixels.size() != b.pixels.size()) return 256;
  int largest = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) {
    largest = std::max(largest, std::abs(int{a.pixels[i]} - int{b.pixels[i]}));
  }
  return largest;
}

TEST(JpegTest, ColorsComeBackButForTheLossOfTheFormat) {
  const RgbImage image = SmoothImage(37, 50);
  for (const JpegKind kind : {JpegKind::kColor, JpegKind::kProgressive, JpegKind::kCmyk}) {
    const std::string file = EncodeJpeg(image, kind);
    EXPECT_TRUE(LooksLikeJpeg(Bytes(file), static_cast<std::int64_t>(file.size())));
    const auto decoded = Decode(file);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->height, 37);
    EXPECT_EQ(decoded->width, 50);
    EXPECT_LE(LargestDifference(*decoded, image), 8) << static_cast<int>(kind);
  }
}

TEST(JpegTest, GreyHasThreeEqualColors) {
  const auto decoded = Decode(EncodeJpeg(PlainImage(9, 8, 200, 200, 200), JpegKind::kGrey));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_LE(LargestDifference(*decoded, PlainImage(9, 8, 200, 200, 200)), 1);
}

TEST(JpegTest, ATruncatedFileIsRefusedWhereverItEnds) {
  for (const JpegKind kind : {JpegKind::kColor, JpegKind::kProgressive}) {
    const std::string file = EncodeJpeg(PatternImage(64, 64), kind);
    for (std::size_t size = 3; size + 2 < file.size(); size += file.size() / 50) {
      EXPECT_EQ(WhyNot(file.substr(0, size)).substr(0, 22), "truncated or damaged: ");
    }
  }
}

// libjpeg-turbo 2.1's decoder kept state from a damaged header, and refused the next image.
TEST(JpegTest, ADamagedFileDoesNoHarmToTheNext) {
  const std::string file = EncodeJpeg(SmoothImage(40, 40));
  for (std::size_t size = 3; size < 600; size += 3) {
    WhyNot(file.substr(0, size));
    EXPECT_TRUE(Decode(file).ok()) << size;
  }
}

// A file of ImageNet has stray bytes between its data and its end, and Pillow reads it.
TEST(JpegTest, StrayBytesAtTheEndOfTheDataDoNoHarm) {
  std::string file = EncodeJpeg(SmoothImage(40, 40));
  const auto whole = Decode(file);
  ASSERT_TRUE(whole.ok());
  file.insert(file.size() - 2, std::string(100, '\x11'));
  const auto decoded = Decode(file);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->pixels, whole->pixels);
  EXPECT_TRUE(Decode(EncodeJpeg(SmoothImage(40, 40)) + "more behind the end").ok());
}

// 130 bytes claim 65500 x 65500 pixels, 12 GB.
TEST(JpegTest, AnAbsurdSizeIsRefusedBeforeThereIsMemoryForIt) {
  std::string file = EncodeJpeg(PlainImage(16, 16, 1, 2, 3));
  const std::size_t frame = file.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  file.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_EQ(WhyNot(file),
            "it claims 65500 x 65500 pixels, and at most 67108864 are read; make it smaller");
}

}  // namespace
}  // namespace muster::trainer
