#include "trainer/data/samples/image_samples.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

// Two images of two channels of 2 x 3 pixels: the first 10, 20, ... 120, the second 130 ... 240.
LabelledImages Small() {
  LabelledImages images{.channels = 2, .height = 2, .width = 3, .classes = 2, .labels = {0, 1}};
  for (int i = 1; i <= 24; ++i) images.pixels.push_back(static_cast<std::uint8_t>(10 * i));
  return images;
}

// Unchanged bytes, so that expectations are readable; plus a thousand in the second channel.
NormalizedPixels Plain() {
  NormalizedPixels table(2);
  for (int i = 0; i < 256; ++i) {
    table[0][static_cast<std::size_t>(i)] = static_cast<float>(i);
    table[1][static_cast<std::size_t>(i)] = static_cast<float>(1000 + i);
  }
  return table;
}

std::vector<float> Gathered(const ImageVariation& variation, std::int64_t index = 0) {
  std::vector<float> pixels(12);
  GatherImage(Small(), Plain(), index, variation, pixels.data());
  return pixels;
}

TEST(ImageGatherTest, ImageIsCopiedChannelByChannel) {
  EXPECT_EQ(Gathered({}), (std::vector<float>{10, 20, 30, 40, 50, 60,  //
                                              1070, 1080, 1090, 1100, 1110, 1120}));
  EXPECT_EQ(Gathered({}, 1), (std::vector<float>{130, 140, 150, 160, 170, 180,  //
                                                 1190, 1200, 1210, 1220, 1230, 1240}));
}

TEST(ImageGatherTest, MirroredImageHasItsRowsReversed) {
  EXPECT_EQ(Gathered({.mirrored = true}), (std::vector<float>{30, 20, 10, 60, 50, 40,  //
                                                              1090, 1080, 1070, 1120, 1110, 1100}));
}

TEST(ImageGatherTest, WhatIsCutOutsideTheImageIsBlack) {
  EXPECT_EQ(Gathered({.down = 1, .right = 1}),
            (std::vector<float>{50, 60, 0, 0, 0, 0,  //
                                1110, 1120, 1000, 1000, 1000, 1000}));
  EXPECT_EQ(Gathered({.down = -1, .right = -2}),
            (std::vector<float>{0, 0, 0, 0, 0, 10,  //
                                1000, 1000, 1000, 1000, 1000, 1070}));
  // Cut first, then mirrored.
  EXPECT_EQ(Gathered({.mirrored = true, .right = 1}),
            (std::vector<float>{20, 10, 0, 50, 40, 0,  //
                                1080, 1070, 1000, 1110, 1100, 1000}));
  EXPECT_EQ(Gathered({.down = 9, .right = 9}),
            (std::vector<float>{0, 0, 0, 0, 0, 0, 1000, 1000, 1000, 1000, 1000, 1000}));
}

TEST(ImageGatherTest, PixelsAreNormalizedInThreeRoundedSteps) {
  const NormalizedPixels table = MakeNormalizedPixels({{0.2860, 0.5}, {0.3530, 0.25}});
  ASSERT_EQ(table.size(), 2u);
  for (int level = 0; level < 256; ++level) {
    const float unit = static_cast<float>(level) / 255.0F;
    const float centred = unit - 0.2860F;
    EXPECT_EQ(table[0][static_cast<std::size_t>(level)], centred / 0.3530F);
  }
  EXPECT_EQ(table[1][0], -2.0F);
  EXPECT_EQ(table[1][255], 2.0F);
}

TEST(ImageGatherTest, NormalizationIsMeasuredForEachChannel) {
  LabelledImages images{.channels = 2, .height = 1, .width = 2, .labels = {0, 0}};
  images.pixels = {0, 255, 51, 51, 0, 255, 51, 51};
  const Normalization norm = MeasureNormalization(images);
  EXPECT_EQ(norm.mean, (std::vector<double>{0.5, 0.2}));
  // A constant channel must not cause a division by 0.
  EXPECT_EQ(norm.deviation, (std::vector<double>{0.5, 1}));
}

}  // namespace
}  // namespace muster::trainer
