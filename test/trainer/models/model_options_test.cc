#include "trainer/models/model_options.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(ModelOptionsTest, SizesOfImagesComeFromTheData) {
  ModelOptions options{.kind = ModelKind::kResNet18};
  const DataShape cifar{.channels = 3, .height = 32, .width = 32, .classes = 100};
  ASSERT_TRUE(FitModelToData(cifar, &options).ok());
  EXPECT_EQ(options.channels, 3);
  EXPECT_EQ(options.height, 32);
  EXPECT_EQ(options.width, 32);
  EXPECT_EQ(options.classes, 100);
}

TEST(ModelOptionsTest, VocabularyAndContextComeFromTheText) {
  ModelOptions options{.kind = ModelKind::kGpt};
  const DataShape text{.kind = DataShape::Kind::kText, .classes = 256, .context = 64};
  ASSERT_TRUE(FitModelToData(text, &options).ok());
  EXPECT_EQ(options.gpt.vocabulary, 256);
  EXPECT_EQ(options.gpt.context, 64);
}

// A GPT that learned through another tokenizer was refused for the shape of a tensor.
TEST(ModelOptionsTest, TheVocabularyIsWhatMakesAGpt) {
  const ModelOptions options{.kind = ModelKind::kGpt, .gpt = {.vocabulary = 50257}};
  EXPECT_EQ(ModelFlags(options).back(), ModelFlag("--vocabulary", "50257"));
}

TEST(ModelOptionsTest, ModelForOtherDataIsRefused) {
  ModelOptions gpt{.kind = ModelKind::kGpt};
  const absl::Status images = FitModelToData({}, &gpt);
  EXPECT_EQ(images.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(images.message(), "make model gpt: it takes text, and the data is images");
  EXPECT_EQ(gpt.gpt.context, GptOptions{}.context);

  ModelOptions cnn;
  const absl::Status text = FitModelToData({.kind = DataShape::Kind::kText}, &cnn);
  EXPECT_EQ(text.message(), "make model cnn: it takes images, and the data is text");
}

TEST(ModelOptionsTest, ImpossibleSizesAreRefusedInASentence) {
  const auto refusal = [](const ModelOptions& options) {
    const absl::Status status = CheckModelOptions(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(refusal({.kind = ModelKind::kGpt, .gpt = {.heads = 3}}),
            "make model gpt: its width of 128 cannot be divided by its 3 heads");
  EXPECT_EQ(refusal({.kind = ModelKind::kGpt, .gpt = {.layers = 0}}),
            "make model gpt: each of its sizes must be at least 1");
  EXPECT_EQ(refusal({.kind = ModelKind::kMlp, .hidden = {256, -1}}),
            "make model mlp: a hidden layer of -1 units");
  EXPECT_EQ(refusal({.height = 3}),
            "make model cnn: images of 3 x 28 pixels are too small to be halved twice");
  EXPECT_EQ(refusal({.kind = ModelKind::kResNet18, .channels = 0}),
            "make model resnet18: images and classes must have a size of at least 1");
  EXPECT_TRUE(CheckModelOptions({.kind = ModelKind::kMlp, .hidden = {}}).ok());
}

}  // namespace
}  // namespace muster::trainer
