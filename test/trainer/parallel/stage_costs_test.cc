#include "trainer/parallel/autograd_graph.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "trainer/models/gpt.h"
#include "trainer/models/image_models.h"
#include "trainer/parallel/mesh_links.h"
#include "trainer/pipeline/schedules.h"

namespace muster::trainer {
namespace {

using Costs = std::vector<double>;

std::unique_ptr<Model> Make(const ModelRecipe& recipe, const DataShape& shape) {
  return MakeModel(recipe, shape).value();
}

TEST(StageCostsTest, OfAnMlpByHand) {
  const auto model = Make(MlpRecipe("mlp", {12}), {.height = 4, .width = 4, .classes = 5});
  // Flatten, a layer, ReLU, a layer; for two samples.
  EXPECT_EQ(StageCosts(*model, at::zeros({2, 1, 4, 4})),
            (Costs{16 * 32.0, 2 * (16 * 12.0 + 16 * 12), 2 * 16 * 12.0, 2 * (12 * 5.0 + 16 * 5)}));
}

TEST(StageCostsTest, OfAConvolutionByHand) {
  const auto model = Make(CnnRecipe(), {.channels = 3, .height = 8, .width = 8});
  // 16 channels of 8 x 8 places, each from 3 x 3 x 3 numbers.
  EXPECT_EQ(StageCosts(*model, at::zeros({1, 3, 8, 8}))[0], 16 * 64 * 27.0 + 16 * 16 * 64.0);
}

TEST(StageCostsTest, OfAGptByHand) {
  constexpr double kTokens = 8;
  constexpr double kWidth = 16;
  const auto model = Make(GptRecipe({.layers = 3, .heads = 2, .width = 16}),
                          {.kind = DataShape::Kind::kText, .classes = 50, .context = 8});
  const Costs costs = StageCosts(*model, at::zeros({1, 8}, at::kLong));
  const double out = 16 * kTokens * kWidth;
  const double block = kTokens * 12 * kWidth * kWidth + 2 * kTokens * kTokens * kWidth + out;
  EXPECT_EQ(costs, (Costs{out, block, block, block, kTokens * 50 * kWidth + 16 * kTokens * 50}));
  const auto recomputed =
      MakeModel(GptRecipe({.layers = 3, .heads = 2, .width = 16}),
                {.kind = DataShape::Kind::kText, .classes = 50, .context = 8}, {.recompute = true})
          .value();
  EXPECT_EQ(StageCosts(*recomputed, at::zeros({1, 8}, at::kLong)), costs);
  EXPECT_EQ(RangesOf(CutEvenly(costs, 3).value(), 5),
            (std::vector<StageRange>{{0, 2}, {2, 3}, {3, 5}}));
}

TEST(StageCostsTest, LeaveBuffersAndTheModeAlone) {
  const auto model = Make(ResNet18Recipe(), {});
  const at::Tensor mean = model->Buffers()[0].tensor;
  const Costs costs = StageCosts(*model, at::zeros({1, 1, 28, 28}));
  EXPECT_TRUE(mean.equal(at::zeros_like(mean)));
  model->Forward(at::ones({2, 1, 28, 28}));
  EXPECT_FALSE(mean.equal(at::zeros_like(mean)));
  EXPECT_EQ(costs.size(), model->stages().size());
}

TEST(SharedParametersTest, TiedEmbeddingsAreOnTheFirstAndTheLastRank) {
  const DataShape text = {.kind = DataShape::Kind::kText, .classes = 50, .context = 8};
  const auto tied =
      Make(GptRecipe({.layers = 2, .heads = 2, .width = 16, .tie_weights = true}), text);
  const std::vector<StageRange> parts = {{0, 1}, {1, 2}, {2, 3}, {3, 4}};
  const auto shared = FindShared(*tied, {.stages = 4}, parts);
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_EQ(shared[0].ranks, (std::vector<int>{0, 3}));
  EXPECT_EQ(shared[0].names, std::vector<std::string>{"transformer.wte.weight"});
  EXPECT_EQ(FindShared(*tied, {.stages = 2, .chunks = 2}, parts)[0].ranks,
            (std::vector<int>{0, 1}));
  EXPECT_TRUE(FindShared(*tied, {.stages = 1, .chunks = 4}, parts).empty());
  const auto own = Make(GptRecipe({.layers = 2, .heads = 2, .width = 16}), text);
  EXPECT_TRUE(FindShared(*own, {.stages = 4}, parts).empty());
}

}  // namespace
}  // namespace muster::trainer
