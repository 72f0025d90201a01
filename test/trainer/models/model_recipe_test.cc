// The recipes of the models that come with muster-train.
#include "trainer/models/recipe.h"

#include <gtest/gtest.h>

#include "trainer/models/gpt.h"
#include "trainer/models/image_models.h"
#include "trainer/models/model.h"

namespace muster::trainer {
namespace {

using Flags = std::vector<ModelFlag>;

constexpr DataShape kText = {.kind = DataShape::Kind::kText, .classes = 256, .context = 16};

std::string Refusal(const ModelRecipe& recipe, const DataShape& shape) {
  const auto model = MakeModel(recipe, shape);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(model.status().message());
}

TEST(ModelRecipeTest, ModelForOtherDataIsRefused) {
  EXPECT_EQ(Refusal(GptRecipe(), {}), "make model gpt: it takes text, and the data is images");
  EXPECT_EQ(Refusal(CnnRecipe(), kText), "make model cnn: it takes images, and the data is text");
}

TEST(ModelRecipeTest, ImpossibleSizesAreRefusedInASentence) {
  EXPECT_EQ(
      Refusal(GptRecipe({.heads = 3}), kText),
      "make model gpt: its width of 128 cannot be divided by its 3 heads; take a width of 129, "
      "or heads that divide it");
  EXPECT_EQ(Refusal(GptRecipe({.layers = 0}), kText),
            "make model gpt: each of its sizes must be at least 1");
  EXPECT_EQ(Refusal(MlpRecipe("mlp", {256, -1}), {}), "make model mlp: a hidden layer of -1 units");
  EXPECT_EQ(Refusal(CnnRecipe(), {.height = 3}),
            "make model cnn: images of 3 x 28 pixels are too small to be halved twice");
  EXPECT_EQ(Refusal(ResNet18Recipe(), {.channels = 0}),
            "make model resnet18: images and classes must have a size of at least 1");
  EXPECT_TRUE(MakeModel(MlpRecipe("mlp", {}), {}).ok());
}

TEST(ModelRecipeTest, SizesOfAGptAreInItsShapes) {
  const TensorShapes shapes = {
      {"transformer.wte.weight", {512, 96}}, {"transformer.wpe.weight", {64, 96}},
      {"transformer.h.0.ln_1.weight", {96}}, {"transformer.h.1.ln_1.weight", {96}},
      {"transformer.h.2.ln_1.weight", {96}}, {"lm_head.weight", {512, 96}}};
  EXPECT_EQ(GptRecipe().recognize(shapes), (Flags{{"--layers", "3"},
                                                  {"--heads", ""},
                                                  {"--width", "96"},
                                                  {"--context", "64"},
                                                  {"--vocabulary", "512"}}));
}

TEST(ModelRecipeTest, StemOfAResNetIsTheSizeOfItsKernel) {
  for (const auto& [kernel, stem] : {std::pair{3, "small"}, {7, "imagenet"}}) {
    EXPECT_EQ(ResNet18Recipe().recognize({{"conv1.weight", {64, 3, kernel, kernel}},
                                          {"layer1.0.conv1.weight", {64, 64, 3, 3}}}),
              (Flags{{"--stem", stem}}));
  }
}

TEST(ModelRecipeTest, AnMlpIsKnownByItsWidths) {
  const TensorShapes large = {{"1.weight", {4096, 784}},
                              {"3.weight", {4096, 4096}},
                              {"5.weight", {1024, 4096}},
                              {"7.weight", {10, 1024}}};
  EXPECT_EQ(MlpRecipe("mlp-large", {4096, 4096, 1024}).recognize(large), Flags());
  EXPECT_EQ(MlpRecipe("mlp", {256, 256}).recognize(large), std::nullopt);
  EXPECT_EQ(CnnRecipe().recognize(large), std::nullopt);
  EXPECT_EQ(CnnRecipe().recognize({{"0.weight", {16, 1, 3, 3}}, {"7.weight", {128, 1568}}}),
            Flags());
}

TEST(ModelRecipeTest, OtherModelsAreNotRecognized) {
  const std::vector<TensorShapes> others = {
      {},
      {{"encoder.weight", {8, 8}}},
      {{"conv1.weight", {64, 3, 7, 7}}},
      {{"0.weight", {16}}},
      {{"transformer.wte.weight", {256}}, {"transformer.wpe.weight", {64, 96}}}};
  for (const TensorShapes& shapes : others) {
    for (const ModelRecipe& recipe :
         {CnnRecipe(), GptRecipe(), MlpRecipe("mlp", {}), ResNet18Recipe()}) {
      EXPECT_EQ(recipe.recognize(shapes), std::nullopt) << recipe.name;
    }
  }
}

}  // namespace
}  // namespace muster::trainer
