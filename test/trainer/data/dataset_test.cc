// Data sets as tensors, and opening them.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "test/support/temp_dir.h"
#include "trainer/data/datasets.h"

namespace muster::trainer {
namespace {

constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist";

std::shared_ptr<const LabelledImages> RandomImages(std::int64_t count, std::int64_t channels) {
  auto images = std::make_shared<LabelledImages>(
      LabelledImages{.channels = channels, .height = 6, .width = 5});
  for (std::int64_t i = 0; i < count * channels * 30; ++i) {
    images->pixels.push_back(static_cast<std::uint8_t>(i * i * 31 + i));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    images->labels.push_back(static_cast<std::uint8_t>(i % 10));
  }
  return images;
}

std::shared_ptr<const std::string> CountingText(std::size_t size) {
  auto text = std::make_shared<std::string>();
  while (text->size() < size) *text += static_cast<char>(text->size());
  return text;
}

TextDataset Windows(const std::shared_ptr<const std::string>& text, std::int64_t context,
                    std::int64_t vocabulary = 256) {
  const TokenRange range = {.owner = text,
                            .begin = reinterpret_cast<const std::uint8_t*>(text->data()),
                            .size = static_cast<std::int64_t>(text->size()),
                            .source = "memory"};
  return TextDataset(TokenWindows({range}, context, vocabulary, /*seed=*/1));
}

TEST(ImageDatasetTest, BatchIsBitForBitWhatTensorOperationsGive) {
  const auto images = RandomImages(20, 3);
  const ImageDataset dataset(images, {{0.1, 0.2, 0.3}, {0.4, 0.5, 0.6}}, {});
  const std::vector<std::int64_t> indices = {3, 19, 0, 3};
  const Batch batch = dataset.Gather(indices, /*epoch=*/0, /*train=*/true);

  const at::Tensor all =
      at::from_blob(const_cast<std::uint8_t*>(images->pixels.data()), {20, 3, 6, 5}, at::kByte);
  at::Tensor expected = all.index_select(0, at::tensor(indices)).to(at::kFloat).div_(255);
  expected.sub_(at::tensor({0.1F, 0.2F, 0.3F}).view({1, 3, 1, 1}));
  expected.div_(at::tensor({0.4F, 0.5F, 0.6F}).view({1, 3, 1, 1}));
  EXPECT_TRUE(batch.inputs.equal(expected));
  EXPECT_TRUE(batch.targets.equal(at::tensor({3, 9, 0, 3}, at::kLong)));
}

TEST(ImageDatasetTest, VariationsDependOnTheImageAndTheEpochAlone) {
  const ImageDataset dataset(RandomImages(50, 1), {{0.0}, {1.0}},
                             {.flip = true, .crop_padding = 2, .seed = 4});
  const Batch both = dataset.Gather({7, 30}, /*epoch=*/1, /*train=*/true);
  const Batch other = dataset.Gather({1, 2, 30, 7}, /*epoch=*/1, /*train=*/true);
  EXPECT_TRUE(both.inputs[0].equal(other.inputs[3]));
  EXPECT_TRUE(both.inputs[1].equal(other.inputs[2]));

  std::vector<std::int64_t> all(50);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  const at::Tensor plain = dataset.Gather(all, /*epoch=*/0, /*train=*/false).inputs;
  EXPECT_TRUE(dataset.Gather(all, /*epoch=*/1, /*train=*/false).inputs.equal(plain));
  EXPECT_FALSE(dataset.Gather(all, /*epoch=*/1, /*train=*/true)
                   .inputs.equal(dataset.Gather(all, /*epoch=*/0, /*train=*/true).inputs));
}

TEST(ImageDatasetTest, IndexOutsideIsThrown) {
  const ImageDataset dataset(RandomImages(5, 1), {{0.0}, {1.0}}, {});
  EXPECT_THROW(dataset.Gather({5}, 0, true), std::out_of_range);
  EXPECT_THROW(dataset.Gather({-1}, 0, true), std::out_of_range);
  EXPECT_EQ(dataset.Gather({}, 0, true).inputs.size(0), 0);
}

TEST(TextDatasetTest, TargetsAreTheFollowingBytes) {
  const TextDataset dataset = Windows(CountingText(100), 10);
  EXPECT_EQ(dataset.size(), 9);
  const Batch batch = dataset.Gather({0, 8}, /*epoch=*/0, /*train=*/false);
  EXPECT_TRUE(batch.inputs[0].equal(at::arange(0, 10)));
  EXPECT_TRUE(batch.targets[0].equal(at::arange(1, 11)));
  EXPECT_TRUE(batch.inputs[1].equal(at::arange(80, 90)));
  EXPECT_THROW(dataset.Gather({9}, 0, false), std::out_of_range);
}

TEST(TextDatasetTest, WindowsOfAnEpochMoveTogetherAndStayInside) {
  const TextDataset dataset = Windows(CountingText(100), 10);
  std::vector<bool> seen(10, false);
  for (std::int64_t epoch = 0; epoch < 200; ++epoch) {
    const Batch batch = dataset.Gather({0, 8}, epoch, /*train=*/true);
    const auto shift = batch.inputs[0][0].item<std::int64_t>();
    ASSERT_GE(shift, 0);
    ASSERT_LT(shift, 10);
    seen[static_cast<std::size_t>(shift)] = true;
    EXPECT_TRUE(batch.inputs[1].equal(at::arange(80, 90) + shift));
    EXPECT_TRUE(batch.targets.equal(batch.inputs + 1));
  }
  EXPECT_EQ(seen, std::vector<bool>(10, true));
}

TEST(TextDatasetTest, ATokenOutsideOfTheVocabularyIsThrown) {
  const TextDataset dataset = Windows(CountingText(100), 10, /*vocabulary=*/50);
  EXPECT_EQ(dataset.shape().classes, 50);
  dataset.Gather({0, 3}, /*epoch=*/0, /*train=*/false);
  EXPECT_THROW(dataset.Gather({4}, /*epoch=*/0, /*train=*/false), std::invalid_argument);
}

TEST(OpenDataTest, FashionMnistIsNormalizedByThePublishedNumbers) {
  if (!std::filesystem::exists(kFashionMnist)) GTEST_SKIP() << "needs dataset-fashion-mnist";
  const auto splits = OpenIdx({.paths = {kFashionMnist}});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 60000);
  EXPECT_EQ(splits->test->size(), 10000);
  const Batch batch = splits->train->Gather({0}, 0, true);
  // The first image starts with black, and its class is ankle boot.
  EXPECT_EQ(batch.inputs[0][0][0][0].item<float>(), (0.0F - 0.2860F) / 0.3530F);
  EXPECT_EQ(batch.targets[0].item<std::int64_t>(), 9);
}

TEST(OpenDataTest, CifarIsOpened) {
  const test::TempDir dir;
  const std::string record = std::string(1, '\x02') + std::string(3072, '\x40');
  for (const char* name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                           "data_batch_5", "test_batch"}) {
    dir.Write(std::string(name) + ".bin", record);
  }
  const auto splits = OpenCifar10({.paths = {dir.path()}});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 5);
  EXPECT_EQ(splits->test->shape().channels, 3);
  EXPECT_EQ(splits->train->Gather({4}, 0, true).inputs.sizes(),
            (std::vector<std::int64_t>{1, 3, 32, 32}));
}

TEST(OpenDataTest, TextIsSplitWithoutOverlap) {
  const test::TempDir dir;
  const auto text = CountingText(250);
  const auto splits =
      OpenText({.paths = {dir.Write("text", *text)}, .context = 10, .test_share = .2});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 19);  // of 200 bytes
  EXPECT_EQ(splits->test->size(), 4);    // of 50
  EXPECT_EQ(splits->test->Gather({0}, 0, false).inputs[0][0].item<std::int64_t>(), 200);
  EXPECT_EQ(splits->train->shape().kind, DataShape::Kind::kText);
  EXPECT_EQ(splits->train->shape().context, 10);
}

TEST(OpenDataTest, TokensAreInputsAndTargets) {
  const test::TempDir dir;
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += {static_cast<char>(i), '\x01'};
  const auto splits =
      OpenTokens({.paths = {dir.Write("tokens.bin", bytes)}, .context = 10, .vocabulary = 500});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->shape().classes, 500);
  const Batch batch = splits->test->Gather({0}, 0, false);
  EXPECT_TRUE(batch.inputs[0].equal(at::arange(256 + 180, 256 + 190)));
  EXPECT_TRUE(batch.targets[0].equal(at::arange(256 + 181, 256 + 191)));
}

TEST(OpenDataTest, GeneratedDataNeedsNoFile) {
  for (const auto open : {OpenGeneratedImages, OpenGeneratedText}) {
    const auto splits = open({.paths = {"/nonexistent"}});
    ASSERT_TRUE(splits.ok()) << splits.status();
    const Batch batch = splits->train->Gather({0, splits->train->size() - 1}, 0, true);
    EXPECT_EQ(batch.inputs.size(0), 2);
  }
}

TEST(OpenDataTest, WhatCannotBeUsedIsRefusedInASentence) {
  const auto refusal = [](const DataOptions& options) {
    const auto splits = OpenIdx(options);
    EXPECT_EQ(splits.status().code(), absl::StatusCode::kInvalidArgument) << splits.status();
    return std::string(splits.status().message());
  };
  EXPECT_EQ(refusal({.paths = {"/nonexistent"}}), "read data from /nonexistent: no such directory");
  // The error was that there is no such directory.
  EXPECT_EQ(refusal({.paths = {"/etc/passwd"}}),
            "read data from /etc/passwd: it is a file, and images are read from a directory; text "
            "is what --model gpt learns from");
  EXPECT_EQ(refusal({.paths = {"a", "b"}}),
            "--data names 2 paths, and images are read from one directory");
  EXPECT_EQ(refusal({.augmentation = {.crop_padding = -1}}),
            "a crop padding of -1 pixels: it must be from 0 to 64");
}

}  // namespace
}  // namespace muster::trainer
