// Folders of images as tensors.
#include "trainer/data/datasets.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <thread>

#include "test/support/temp_dir.h"
#include "test/trainer/encoded.h"

namespace muster::trainer {
namespace {

class OpenImageFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"train/a", "train/b", "val/b"}) {
      std::filesystem::create_directories(dir_.Path(folder));
    }
    dir_.Write("train/a/1.png", EncodePng(PatternImage(16, 16)));
    dir_.Write("train/a/2.png", EncodePng(PatternImage(40, 25)));
    dir_.Write("train/b/3.jpg", EncodeJpeg(SmoothImage(30, 50)));
    dir_.Write("val/b/4.png", EncodePng(PlainImage(20, 20, 255, 0, 51)));
  }

  Splits Open(const AugmentationOptions& augmentation = {}) {
    auto splits =
        OpenFolder({.paths = {dir_.path()}, .augmentation = augmentation, .image_size = 16});
    EXPECT_TRUE(splits.ok()) << splits.status();
    return *std::move(splits);
  }

  const test::TempDir dir_;
};

TEST_F(OpenImageFolderTest, ImagesAreNormalizedAsImageNetsAre) {
  const Splits splits = Open();
  EXPECT_EQ(splits.train->size(), 3);
  EXPECT_EQ(splits.train->shape().classes, 2);
  const Batch test = splits.test->Gather({0}, 0, false);
  EXPECT_EQ(test.inputs.sizes(), (std::vector<std::int64_t>{1, 3, 16, 16}));
  EXPECT_EQ(test.targets[0].item<std::int64_t>(), 1);
  EXPECT_EQ(test.inputs[0][0][3][4].item<float>(), (1.0F - 0.485F) / 0.229F);
  EXPECT_EQ(test.inputs[0][1][3][4].item<float>(), (0.0F - 0.456F) / 0.224F);
  EXPECT_EQ(test.inputs[0][2][3][4].item<float>(), (51 / 255.0F - 0.406F) / 0.225F);
  // The first image has the size already, so its pixels are those of the file.
  const at::Tensor first = splits.train->Gather({0}, 0, false).inputs[0];
  const float green = PatternImage(16, 16).pixels[(2 * 16 + 5) * 3 + 1] / 255.0F;
  EXPECT_EQ(first[1][2][5].item<float>(), (green - 0.456F) / 0.224F);
}

TEST_F(OpenImageFolderTest, TrainingImagesAreMirroredAndShifted) {
  const Splits splits = Open({.flip = true, .crop_padding = 3, .seed = 2});
  const at::Tensor plain = splits.train->Gather({0}, 0, false).inputs[0];
  bool mirrored = false;
  bool shifted = false;
  for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
    const ImageVariation v = VariationOf({.flip = true, .crop_padding = 3, .seed = 2}, epoch, 0);
    const at::Tensor image = splits.train->Gather({0}, epoch, true).inputs[0];
    const std::int64_t x = v.mirrored ? 15 - (8 + v.right) : 8 + v.right;
    EXPECT_EQ(image[1][8][8].item<float>(), plain[1][8 + v.down][x].item<float>());
    mirrored = mirrored || v.mirrored;
    shifted = shifted || v.down != 0;
  }
  EXPECT_TRUE(mirrored && shifted);
}

TEST_F(OpenImageFolderTest, ManyThreadsGatherTheSame) {
  const Splits splits = Open();
  const at::Tensor alone = splits.train->Gather({2, 0, 1}, 0, true).inputs;
  std::vector<at::Tensor> results(8);
  std::vector<std::thread> threads;
  for (at::Tensor& result : results) {
    threads.emplace_back([&] { result = splits.train->Gather({2, 0, 1}, 0, true).inputs; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const at::Tensor& result : results) EXPECT_TRUE(result.equal(alone));
}

TEST_F(OpenImageFolderTest, ADamagedImageIsNamedWhenItIsNeeded) {
  dir_.Write("train/b/3.jpg", EncodeJpeg(PatternImage(60, 60)).substr(0, 900));
  const Splits splits = Open();
  splits.train->Gather({0, 1}, 0, true);
  try {
    splits.train->Gather({0, 2}, 0, true);
    FAIL() << "nothing was thrown";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()).find("read " + dir_.Path("train/b/3.jpg") + ": truncated"),
              0u)
        << error.what();
  }
  EXPECT_THROW(splits.train->Gather({3}, 0, true), std::out_of_range);
}

TEST_F(OpenImageFolderTest, WhatCannotBeUsedIsRefused) {
  EXPECT_EQ(OpenFolder({.paths = {"/nonexistent"}}).status().message(),
            "read data from /nonexistent: no such directory");
  EXPECT_EQ(OpenFolder({.paths = {dir_.path()}, .image_size = 0}).status().message(),
            "an image size of 0 pixels: it must be from 1 to 4096");
}

}  // namespace
}  // namespace muster::trainer
