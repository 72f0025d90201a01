#include "trainer/data/samples/image_folder.h"

#include <gtest/gtest.h>

#include <random>

#include "test/support/temp_dir.h"
#include "test/trainer/encoded.h"
#include "trainer/data/samples/image_samples.h"

namespace muster::trainer {
namespace {

std::string Refusal(const std::string& path) {
  const auto image = ReadImage(path);
  EXPECT_EQ(image.status().code(), absl::StatusCode::kInvalidArgument) << image.status();
  return std::string(image.status().message());
}

// In ImageNet a PNG file has a name that ends with .JPEG.
TEST(ImageFileTest, TheContentTellsTheFormat) {
  const test::TempDir dir;
  const RgbImage image = PatternImage(6, 5);
  const auto png = ReadImage(dir.Write("a.JPEG", EncodePng(image)));
  ASSERT_TRUE(png.ok()) << png.status();
  EXPECT_EQ(png->pixels, image.pixels);
  EXPECT_TRUE(ReadImage(dir.Write("b.png", EncodeJpeg(image))).ok());
}

TEST(ImageFileTest, WhatIsNoImageIsRefusedByName) {
  const test::TempDir dir;
  const std::string gif = dir.Write("a.jpg", "GIF89a, or so it says");
  EXPECT_EQ(Refusal(gif), "read " + gif + ": neither a JPEG nor a PNG file");
  const std::string empty = dir.Write("b.jpg", "");
  EXPECT_EQ(Refusal(empty), "read " + empty + ": is empty");
  EXPECT_EQ(Refusal(dir.path()), "read " + dir.path() + ": is a directory");
  const std::string cut = dir.Write("c.jpg", EncodeJpeg(PatternImage(50, 50)).substr(0, 700));
  EXPECT_EQ(Refusal(cut).find("read " + cut + ": truncated or damaged: "), 0u);
}

// Damaged files of every form are read or refused, without crashing or reading beyond their end,
// which the address sanitizer would report.
TEST(ImageFileTest, DamageOfAnyKindIsSurvived) {
  const test::TempDir dir;
  const RgbImage image = PatternImage(24, 31);
  std::vector<std::string> files = {EncodePng(image),
                                    EncodePng(24, 31, {.interlaced = true}, image.pixels)};
  for (const JpegKind kind :
       {JpegKind::kColor, JpegKind::kGrey, JpegKind::kProgressive, JpegKind::kCmyk}) {
    files.push_back(EncodeJpeg(image, kind));
  }
  std::mt19937 random(7);
  int decoded = 0;
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string file = files[static_cast<std::size_t>(round) % files.size()];
    // More often in the header, where sizes and tables are.
    const std::size_t range =
        random() % 2 == 0 ? std::min<std::size_t>(300, file.size()) : file.size();
    for (std::size_t flips = random() % 6; flips > 0; --flips) {
      char& byte = file[random() % range];
      byte = static_cast<char>(byte ^ (1 << random() % 8));
    }
    if (random() % 3 == 0) file.resize(1 + random() % file.size());
    const auto read = ReadImage(dir.Write("x", file));
    (read.ok() ? decoded : refused)++;
    if (read.ok()) {
      EXPECT_EQ(read->pixels.size(), static_cast<std::size_t>(read->height * read->width * 3));
      EXPECT_EQ(ResizedSquare(*read, 8).size(), 192u);
    } else {
      EXPECT_EQ(read.status().message().find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(decoded, 100);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace muster::trainer
