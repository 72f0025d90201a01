#include "trainer/app/commands/state_dict_model.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(StateDictModelTest, SizesOfAGptAreInItsShapes) {
  TensorShapes shapes = {
      {"transformer.wte.weight", {256, 96}}, {"transformer.wpe.weight", {64, 96}},
      {"transformer.h.0.ln_1.weight", {96}}, {"transformer.h.1.ln_1.weight", {96}},
      {"transformer.h.2.ln_1.weight", {96}}, {"lm_head.weight", {256, 96}}};
  const auto model = ModelOfStateDict(shapes);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->kind, ModelKind::kGpt);
  EXPECT_EQ(model->gpt.vocabulary, 256);
  EXPECT_EQ(model->gpt.width, 96);
  EXPECT_EQ(model->gpt.context, 64);
  EXPECT_EQ(model->gpt.layers, 3);
}

TEST(StateDictModelTest, StemOfAResNetIsTheSizeOfItsKernel) {
  for (const auto& [kernel, stem] :
       {std::pair{3, ResNetStem::kSmall}, {7, ResNetStem::kImageNet}}) {
    const auto model = ModelOfStateDict(
        {{"conv1.weight", {64, 3, kernel, kernel}}, {"layer1.0.conv1.weight", {64, 64, 3, 3}}});
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->kind, ModelKind::kResNet18);
    EXPECT_EQ(model->stem, stem);
  }
}

TEST(StateDictModelTest, LayersWithoutNamesAreTheCnnOrTheMlp) {
  const auto cnn = ModelOfStateDict({{"0.weight", {16, 1, 3, 3}}, {"7.weight", {128, 1568}}});
  ASSERT_TRUE(cnn.ok()) << cnn.status();
  EXPECT_EQ(cnn->kind, ModelKind::kCnn);
  const auto mlp = ModelOfStateDict({{"1.weight", {4096, 784}},
                                     {"3.weight", {4096, 4096}},
                                     {"5.weight", {1024, 4096}},
                                     {"7.weight", {10, 1024}}});
  ASSERT_TRUE(mlp.ok()) << mlp.status();
  EXPECT_EQ(mlp->kind, ModelKind::kMlp);
  EXPECT_EQ(mlp->hidden, (std::vector<std::int64_t>{4096, 4096, 1024}));
}

TEST(StateDictModelTest, OtherModelsAreRefused) {
  const std::vector<TensorShapes> others = {
      {},
      {{"encoder.weight", {8, 8}}},
      {{"conv1.weight", {64, 3, 7, 7}}},
      {{"0.weight", {16}}},
      {{"transformer.wte.weight", {256}}, {"transformer.wpe.weight", {64, 96}}}};
  for (const TensorShapes& shapes : others) {
    const auto model = ModelOfStateDict(shapes);
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace muster::trainer
