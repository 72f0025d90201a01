#include "trainer/models/model.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include "trainer/models/batch_norm_layer.h"
#include "trainer/models/gpt.h"
#include "trainer/models/image_models.h"
#include "trainer/models/objective.h"

namespace muster::trainer {
namespace {

constexpr DataShape kModelText = {.kind = DataShape::Kind::kText, .classes = 256, .context = 16};

std::unique_ptr<Model> Make(const ModelRecipe& recipe, const DataShape& shape = {},
                            const ModelOptions& options = {}) {
  auto model = MakeModel(recipe, shape, options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(ModelTest, MovingToDoubleKeepsCountersIntegers) {
  const auto model = Make(ResNet18Recipe());
  model->MoveTo(at::kCPU, at::kDouble);
  for (const NamedTensor& item : model->StateDict()) {
    const bool counter = item.name.find("num_batches_tracked") != std::string::npos;
    EXPECT_EQ(item.tensor.scalar_type(), counter ? at::kLong : at::kDouble) << item.name;
  }
}

TEST(ModelTest, TensorsKeepTheirIdentityInTraining) {
  const auto model = Make(ResNet18Recipe());
  const std::vector<NamedTensor> before = model->StateDict();
  model->Forward(at::ones({2, 1, 28, 28})).sum().backward();
  const std::vector<NamedTensor> after = model->StateDict();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(before[i].tensor.is_same(after[i].tensor)) << before[i].name;
  }
  EXPECT_EQ(after[5].name, "bn1.num_batches_tracked");
  EXPECT_EQ(before[5].tensor.item<std::int64_t>(), 1);
}

TEST(ModelTest, PartsOneAfterAnotherAreTheWhole) {
  const auto check = [](const ModelRecipe& recipe, const DataShape& shape, const at::Tensor& x) {
    SCOPED_TRACE(recipe.name);
    const auto model = Make(recipe, shape, {.channels_last = true});
    const std::size_t stages = model->stages().size();
    for (std::size_t cut = 1; cut < stages; ++cut) {
      const at::Tensor between = model->ForwardPart({}, {0, cut}, x);
      EXPECT_TRUE(model->ForwardPart({}, {cut, stages}, between).equal(model->Forward(x))) << cut;
    }
    // Each parameter belongs to a stage.
    std::size_t parameters = 0;
    for (std::size_t i = 0; i < stages; ++i) {
      parameters += model->ParametersOf({i, i + 1}).size();
    }
    EXPECT_EQ(parameters, model->Parameters().size());
  };
  const DataShape images = {.channels = 3, .height = 28, .width = 28, .classes = 10};
  const at::Tensor pictures = at::randn({2, 3, 28, 28});
  check(MlpRecipe("mlp", {16, 16}), images, pictures);
  check(CnnRecipe(), images, pictures);
  check(GptRecipe({.layers = 2, .heads = 2, .width = 16}), kModelText,
        at::randint(256, {2, 16}, at::kLong));
}

TEST(ModelTest, StagesThatShareAParameterBothHaveIt) {
  const auto model =
      Make(GptRecipe({.layers = 1, .heads = 2, .width = 16, .tie_weights = true}), kModelText);
  EXPECT_EQ(model->ParametersOf({0, 1})[0].name, "transformer.wte.weight");
  EXPECT_EQ(model->ParametersOf({2, 3})[0].name, "transformer.wte.weight");
  EXPECT_EQ(model->ParametersOf({2, 3}).size(), 3u);
}

TEST(ModelTest, SizesAreTheKnownOnes) {
  const auto count = [](const ModelRecipe& recipe, const DataShape& shape = {}) {
    std::int64_t elements = 0;
    for (const NamedTensor& parameter : Make(recipe, shape)->Parameters()) {
      elements += parameter.tensor.numel();
    }
    return elements;
  };
  EXPECT_EQ(count(CnnRecipe()), 206922);
  EXPECT_EQ(count(MlpRecipe("mlp", {256, 256})), 269322);
  // torchvision's resnet18 for the thousand classes of ImageNet.
  EXPECT_EQ(count(ResNet18Recipe("imagenet"), {.channels = 3, .classes = 1000}), 11689512);
  // Less its stem's 9408 for 576, and 513,000 for 5,130.
  EXPECT_EQ(count(ResNet18Recipe()), 11172810);
}

TEST(ModelTest, ChannelsLastChangesTheLayoutAndNotTheNumbers) {
  for (const ModelRecipe& recipe : {CnnRecipe(), ResNet18Recipe()}) {
    for (const std::int64_t channels : {1, 3}) {
      SCOPED_TRACE(recipe.name + " of " + std::to_string(channels));
      const DataShape images = {.channels = channels};
      const auto plain = Make(recipe, images, {.seed = 3});
      const auto last = Make(recipe, images, {.seed = 3, .channels_last = true});
      for (const NamedTensor& parameter : last->Parameters()) {
        if (parameter.tensor.dim() == 4) {
          EXPECT_TRUE(parameter.tensor.is_contiguous(at::MemoryFormat::ChannelsLast));
        }
      }
      const at::Tensor inputs = at::randn({4, channels, 28, 28}, at::kDouble);
      plain->MoveTo(at::kCPU, at::kDouble);
      last->MoveTo(at::kCPU, at::kDouble);
      EXPECT_TRUE(plain->Forward(inputs).allclose(last->Forward(inputs), 1e-9, 1e-9));
    }
  }
}

TEST(ModelTest, EveryBatchNormLayerCallsTheFunctionGiven) {
  const auto model = Make(ResNet18Recipe());
  const at::Tensor images = at::randn({3, 1, 28, 28});
  const at::Tensor expected = model->Forward(images);
  int training = 0;
  int evaluating = 0;
  model->SetBatchNorm([&](const at::Tensor& input, const BatchNormParts& parts) {
    ++(parts.training ? training : evaluating);
    EXPECT_EQ(input.size(1), parts.weight.size(0));
    return LocalBatchNorm(input, parts);
  });
  EXPECT_TRUE(model->Forward(images).equal(expected));
  EXPECT_EQ(training, 20);
  model->SetTraining(false);
  model->Forward(images);
  EXPECT_EQ(evaluating, 20);
  // A model without such layers does not mind.
  Make(CnnRecipe())->SetBatchNorm(LocalBatchNorm);
}

TEST(ModelTest, GptDoesNotLookAhead) {
  const auto model = Make(GptRecipe({.layers = 2, .heads = 2, .width = 32}), kModelText);
  at::Tensor tokens = at::randint(0, 256, {2, 16}, at::kLong);
  const at::Tensor scores = model->Forward(tokens);
  ASSERT_EQ(scores.sizes(), (std::vector<std::int64_t>{2, 16, 256}));
  tokens = tokens.clone();
  tokens.narrow(1, 9, 7).fill_(7);
  const at::Tensor changed = model->Forward(tokens);
  EXPECT_TRUE(changed.narrow(1, 0, 9).allclose(scores.narrow(1, 0, 9), 1e-5, 1e-6));
  EXPECT_FALSE(changed.narrow(1, 9, 7).allclose(scores.narrow(1, 9, 7), 1e-5, 1e-6));
}

TEST(ModelTest, GptTakesTextsShorterThanItsContext) {
  const auto model = Make(GptRecipe({.layers = 1, .heads = 2, .width = 32}), kModelText);
  EXPECT_EQ(model->Forward(at::zeros({1, 1}, at::kLong)).size(1), 1);
  EXPECT_ANY_THROW(model->Forward(at::zeros({1, 17}, at::kLong)));
}

// Random numbers depended on the generator's state, which checkpoints of another world size did not
// have.
TEST(ModelTest, RandomNumbersDependOnThePlaceInTheTraining) {
  const auto noise = [](const at::Tensor& x) { return x + at::randn(x.sizes()); };
  Model model(
      {.module = std::make_shared<torch::nn::Module>(), .stages = {{"a", noise}, {"b", noise}}},
      /*channels_last=*/false);
  const at::Tensor x = at::zeros({4}).requires_grad_();
  const RandomPlace place = {.seed = 7, .step = 3, .micro_batch = 1, .data_rank = 2};
  const at::Tensor drawn = model.ForwardAt(place, x);
  EXPECT_FALSE(model.Forward(x).equal(drawn));
  EXPECT_TRUE(model.ForwardAt(place, x).equal(drawn));
  for (const RandomPlace& other :
       {RandomPlace{8, 3, 1, 2}, {7, 4, 1, 2}, {7, 3, 0, 2}, {7, 3, 1, 1}}) {
    EXPECT_FALSE(model.ForwardAt(other, x).equal(drawn));
  }
  // Each stage draws its own: equal numbers would double the first one's.
  Model first({.module = std::make_shared<torch::nn::Module>(), .stages = {{"a", noise}}},
              /*channels_last=*/false);
  EXPECT_FALSE((first.ForwardAt(place, x) * 2).allclose(drawn));
}

TEST(LossTest, IsTheSumOverEveryPrediction) {
  const at::Tensor scores = at::randn({2, 3, 5}, at::kDouble);
  const at::Tensor targets = at::tensor({0, 4, 2, 1, 1, 3}, at::kLong).view({2, 3});
  double expected = 0;
  for (int b = 0; b < 2; ++b) {
    for (int t = 0; t < 3; ++t) {
      expected -= scores[b][t].log_softmax(0)[targets[b][t].item<std::int64_t>()].item<double>();
    }
  }
  EXPECT_NEAR(CrossEntropySum(scores, targets).item<double>(), expected, 1e-12);
  EXPECT_EQ(CountPredictions(targets), 6);
  EXPECT_EQ(CountCorrect(at::one_hot(targets, 5), targets).item<int>(), 6);
  EXPECT_EQ(CountCorrect(at::one_hot(at::full_like(targets, 1), 5), targets).item<int>(), 2);
}

TEST(LossTest, RankWithoutSamplesHasALossOfZeroWithAGradient) {
  const at::Tensor scores = at::randn({3, 5}).requires_grad_();
  const at::Tensor loss = CrossEntropySum(scores.narrow(0, 0, 0), at::zeros({0}, at::kLong));
  EXPECT_EQ(loss.item<double>(), 0);
  loss.backward();
  EXPECT_TRUE(scores.grad().equal(at::zeros({3, 5})));
}

TEST(LossTest, HalfPrecisionScoresAreAddedUpInFloat32) {
  const at::Tensor scores = at::zeros({1000, 10}, at::kBFloat16);
  const at::Tensor loss = CrossEntropySum(scores, at::zeros({1000}, at::kLong));
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  EXPECT_NEAR(loss.item<double>(), 1000 * std::log(10.0), 0.1);
}

}  // namespace
}  // namespace muster::trainer
