// Networks trained for 8-bit numbers, against Python's and against their 8-bit conversion.
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <string>
#include <vector>

#include "test/trainer/models/python.h"
#include "test/trainer/models/small_residual.h"
#include "test/trainer/program.h"
#include "trainer/models/image_models.h"
#include "trainer/models/model.h"
#include "trainer/quant/qat_network.h"
#include "trainer/quant/qat_options.h"
#include "trainer/quant/qat_run.h"

namespace muster::trainer {
namespace {

constexpr DataShape kDigits = {.channels = 1, .height = 28, .width = 28, .classes = 10};

std::unique_ptr<Model> Prepared(const ModelRecipe& recipe, std::uint64_t seed = 3) {
  auto model = MakeModel(QatRecipe(recipe), kDigits, {.seed = seed});
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

QatNetwork& NetworkIn(const Model& model) {
  return dynamic_cast<QatNetwork&>(*model.module());
}

// The greatest difference, in steps of the output.
double StepsApart(const at::Tensor& a, const at::Tensor& b, const Int8Network& network) {
  return (a - b).abs().max().item<double>() / network.output_step();
}

// Whether products of 8-bit numbers are summed exactly.
bool AddsExactly() {
  return __builtin_cpu_supports("avx512vnni") != 0;
}

TEST(QatNetworkTest, HasPythonsStateDictAndNumbers) {
  if (!PythonHasTorch()) GTEST_SKIP() << "needs Debian's python3-torch";
  const std::string prefix = TestFile("qat-");
  RunPython("test/trainer/quant/testdata/qat.py", {"3", prefix, "mlp", "cnn"});
  for (const bool mlp : {true, false}) {
    SCOPED_TRACE(mlp ? "mlp" : "cnn");
    const auto theirs = ReadTensors(prefix + (mlp ? "mlp" : "cnn"));
    const auto model = Prepared(mlp ? MlpRecipe("mlp", {256, 256}) : CnnRecipe());
    NetworkIn(*model).SetPhase(QatPhase::kRound);
    model->Forward(Find(theirs, "first").to(at::kFloat));
    const at::Tensor second = Find(theirs, "second").to(at::kFloat);
    const at::Tensor out = model->Forward(second);

    std::vector<std::string> names;
    for (const NamedTensor& one : theirs) {
      if (one.name.rfind("state:", 0) == 0) names.push_back(one.name.substr(6));
    }
    const std::vector<NamedTensor> ours = model->StateDict();
    ASSERT_EQ(ours.size(), names.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i].name, names[i]);
      const at::Tensor python = Find(theirs, "state:" + names[i]);
      EXPECT_EQ(ours[i].tensor.sizes(), python.sizes()) << names[i];
      // Python's convolution observes what comes before its pooling and ReLU.
      if (!mlp && IsOfFakeQuantize(names[i])) continue;
      EXPECT_TRUE(at::allclose(ours[i].tensor.to(at::kDouble), python, 1e-5, 1e-7)) << names[i];
    }
    if (!mlp) continue;
    // Where rounding falls on another side of a step, results are a step apart.
    const double step = NetworkIn(*model).activations().back()->scale().item<double>();
    EXPECT_LE((out - Find(theirs, "out")).abs().max().item<double>(), 1.01 * step);
    model->SetTraining(false);
    const at::Tensor eval = model->Forward(second);
    EXPECT_LE((eval - Find(theirs, "eval")).abs().max().item<double>(), 1.01 * step);
  }
}

TEST(QatNetworkTest, ObservesBeforeItRounds) {
  const auto model = Prepared(MlpRecipe("mlp", {32}));
  QatNetwork& network = NetworkIn(*model);
  const at::Tensor inputs = at::randn({64, 1, 28, 28});
  EXPECT_FALSE(network.observed());
  model->SetTraining(false);
  EXPECT_TRUE(at::equal(model->Forward(inputs), network.FloatForward(inputs)))
      << "there are no ranges to round to";

  model->SetTraining(true);
  network.SetPhase(QatPhase::kObserve);
  EXPECT_TRUE(at::equal(model->Forward(inputs), network.FloatForward(inputs)));
  EXPECT_TRUE(network.observed());
  const double greatest = network.input_rounding().max_val().item<double>();
  EXPECT_EQ(greatest, inputs.max().item<double>());

  network.SetPhase(QatPhase::kRound);
  EXPECT_FALSE(at::equal(model->Forward(inputs * 2), network.FloatForward(inputs * 2)));
  EXPECT_NEAR(network.input_rounding().max_val().item<double>(), 1.01 * greatest, 1e-5);

  const at::Tensor before = network.input_rounding().max_val().clone();
  network.SetPhase(QatPhase::kFrozen);
  model->Forward(inputs * 9);
  EXPECT_TRUE(at::equal(network.input_rounding().max_val(), before));
  model->SetTraining(false);
  network.SetPhase(QatPhase::kRound);
  model->Forward(inputs * 9);
  EXPECT_TRUE(at::equal(network.input_rounding().max_val(), before)) << "an evaluation";
}

TEST(QatNetworkTest, LetsGradientsThroughWithinTheRange) {
  const auto model = Prepared(MlpRecipe("mlp", {32}));
  NetworkIn(*model).SetPhase(QatPhase::kRound);
  model->Forward(at::randn({64, 1, 28, 28})).square().sum().backward();
  for (const NamedTensor& parameter : model->Parameters()) {
    EXPECT_GT(parameter.tensor.grad().abs().sum().item<double>(), 0) << parameter.name;
  }
}

TEST(QatNetworkTest, ConvertsToWhatItComputes) {
  if (!AddsExactly()) GTEST_SKIP() << "needs a processor with AVX-512 VNNI";
  for (const ModelRecipe& recipe : {MlpRecipe("mlp", {256, 256}), CnnRecipe()}) {
    SCOPED_TRACE(recipe.name);
    const auto model = Prepared(recipe);
    NetworkIn(*model).SetPhase(QatPhase::kRound);
    for (int i = 0; i < 3; ++i) model->Forward(at::randn({64, 1, 28, 28}));
    model->SetTraining(false);
    const Int8Network int8(NetworkIn(*model));
    const at::Tensor inputs = at::randn({500, 1, 28, 28});
    const at::Tensor rounded = model->Forward(inputs);
    EXPECT_LE(StepsApart(int8.Forward(inputs), rounded, int8), 1.01);
    const at::Tensor alike = int8.Forward(inputs).argmax(1).eq(rounded.argmax(1));
    EXPECT_GE(alike.to(at::kFloat).mean().item<double>(), 0.95);
    EXPECT_GT((rounded - NetworkIn(*model).FloatForward(inputs)).abs().max().item<double>(), 0);
  }
}

// With Python's weights and ranges, in all of its parts: both stems, with and without a pooling.
TEST(QatNetworkTest, ComputesWhatPythonsResNet18Does) {
  if (!PythonHasTorch()) GTEST_SKIP() << "needs Debian's python3-torch";
  const std::string prefix = TestFile("qat-");
  const struct {
    std::string name;
    const char* stem;
    DataShape shape;
  } cases[] = {
      {"resnet18", "small", kDigits},
      {"resnet18-imagenet",
       "imagenet",
       {.channels = 3, .height = 64, .width = 64, .classes = 1000}},
  };
  RunPython("test/trainer/quant/testdata/qat.py", {"3", prefix, cases[0].name, cases[1].name});
  for (const auto& one : cases) {
    SCOPED_TRACE(one.name);
    const auto theirs = ReadTensors(prefix + one.name);
    const auto model =
        MakeModel(QatRecipe(ResNet18Recipe(one.stem)), one.shape, {.seed = 3}).value();
    QatNetwork& network = NetworkIn(*model);
    network.SetPhase(QatPhase::kRound);
    model->Forward(Find(theirs, "first").to(at::kFloat));
    const at::Tensor second = Find(theirs, "second").to(at::kFloat);
    const at::Tensor out = model->Forward(second);

    const std::vector<NamedTensor> ours = model->StateDict();
    std::size_t at = 0;
    for (const NamedTensor& entry : theirs) {
      if (entry.name.rfind("state:", 0) != 0) continue;
      ASSERT_LT(at, ours.size());
      const NamedTensor& own = ours[at++];
      EXPECT_EQ("state:" + own.name, entry.name);
      ASSERT_EQ(own.tensor.sizes(), entry.tensor.sizes()) << own.name;
      // Python trains without the rounding that its converted network has behind the average.
      const double most = own.name.rfind("fc.activation_post_process.", 0) == 0 ? 0.05 : 1e-4;
      EXPECT_LE((own.tensor.to(at::kDouble) - entry.tensor).abs().max().item<double>(),
                most * entry.tensor.abs().max().item<double>() + 1e-7)
          << own.name;
      at::Tensor same = own.tensor.detach();
      same.copy_(entry.tensor);
    }
    EXPECT_EQ(at, ours.size());

    model->SetTraining(false);
    const Int8Network int8(network);
    const at::Tensor converted = int8.Forward(second);
    EXPECT_LE(StepsApart(converted, Find(theirs, "int8"), int8), 1.01);
    const at::Tensor eval = model->Forward(second);
    EXPECT_LE(StepsApart(out, Find(theirs, "out"), int8), 4.01);
    EXPECT_LE(StepsApart(eval, Find(theirs, "eval"), int8), 4.01);
    // In this many layers, a rounding difference in one shifts the following ones.
    if (AddsExactly()) {
      EXPECT_LE(StepsApart(converted, eval, int8), 6.01);
    }
  }
}

// A convolution with a bias, batch normalization, a pooling, and blocks with and without a
// shortcut.
TEST(QatNetworkTest, FoldsBatchNormalizationAndAddsBranches) {
  if (!AddsExactly()) GTEST_SKIP() << "needs a processor with AVX-512 VNNI";
  for (const bool zero : {false, true}) {
    SCOPED_TRACE(zero ? "a gamma of zeros" : "");
    Model model(PrepareQat(SmallResidual(/*channels=*/3)).value(), /*channels_last=*/false);
    const at::NoGradGuard no_grad;
    for (const NamedTensor& one : model.Parameters()) {
      at::Tensor parameter = one.tensor;
      if (one.name.find(".bn.") != std::string::npos) parameter.uniform_(0.5, 1.5);
      if (zero && one.name == "block1.conv2.bn.weight") parameter.zero_();
    }
    QatNetwork& network = NetworkIn(model);
    network.SetPhase(QatPhase::kRound);
    // Statistics follow by a tenth in each step, ranges by a hundredth.
    for (int i = 0; i < 300; ++i) model.Forward(at::randn({16, 3, 12, 12}));
    model.SetTraining(false);
    const at::Tensor inputs = at::randn({200, 3, 12, 12});
    const at::Tensor rounded = model.Forward(inputs);
    const Int8Network int8(network);
    EXPECT_LE(StepsApart(int8.Forward(inputs), rounded, int8), 1.01);
    const at::Tensor floats = network.FloatForward(inputs);
    EXPECT_GT((rounded - floats).abs().max().item<double>(), 0);
    // Folded or not, what is not rounded is the same, and roundings do not lead far from it.
    EXPECT_LE((rounded - floats).abs().max().item<double>(),
              0.2 * floats.abs().max().item<double>());
    for (const auto& one : network.activations()) {
      EXPECT_TRUE(one->min_val().isfinite().item<bool>());
    }
  }
}

// Also the numbers of the network before preparation.
TEST(QatNetworkTest, ComputesWithoutRoundingWhatTheNetworkDoes) {
  const Network network = SmallResidual(/*channels=*/3);
  Model plain(network, /*channels_last=*/false);
  Model prepared(PrepareQat(network).value(), /*channels_last=*/false);
  const at::Tensor inputs = at::randn({16, 3, 12, 12});
  // They share their parameters and statistics.
  const at::Tensor trained = plain.Forward(inputs);
  EXPECT_TRUE(prepared.Forward(inputs).allclose(trained, 1e-4, 1e-5));
  plain.SetTraining(false);
  const at::Tensor expected = plain.Forward(inputs);
  EXPECT_TRUE(NetworkIn(prepared).FloatForward(inputs).allclose(expected, 1e-4, 1e-5));
}

// LibTorch's own operator gives such a channel a zero point that oneDNN's layers refuse.
TEST(QatNetworkTest, ConvertsChannelsWhoseWeightsAllHaveOneSign) {
  if (!AddsExactly()) GTEST_SKIP() << "needs a processor with AVX-512 VNNI";
  const auto model = Prepared(CnnRecipe());
  {
    const at::NoGradGuard no_grad;
    at::Tensor weight = NetworkIn(*model).blocks()[0].body[0].weight();
    weight[0].abs_();
    weight[1].abs_().neg_();
    weight[2].zero_();
  }
  model->Forward(at::randn({64, 1, 28, 28}));
  model->SetTraining(false);
  const Int8Network int8(NetworkIn(*model));
  const at::Tensor inputs = at::randn({100, 1, 28, 28});
  EXPECT_LE(StepsApart(int8.Forward(inputs), model->Forward(inputs), int8), 1.01);
}

TEST(QatNetworkTest, RefusesOtherNetworksInOneSentence) {
  namespace nn = torch::nn;
  const auto refusal = [](const nn::Sequential& net) {
    return std::string(PrepareQat(NetworkOf(net)).status().message());
  };
  const auto lone = PrepareQat({.module = nn::Linear(4, 4).ptr()});
  EXPECT_EQ(lone.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(lone.status().message().find("--qat needs a torch::nn::Sequential of layers"),
            std::string::npos)
      << lone.status();
  EXPECT_EQ(refusal(nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 1, 3)), nn::ReLU(),
                                   nn::BatchNorm2d(1)))
                .find("--qat cannot quantize layer 2, a batch normalization that is not right "
                      "behind a convolution"),
            0u);
  EXPECT_EQ(refusal(nn::Sequential(nn::ReLU()))
                .find("--qat cannot quantize layer 0, a ReLU that follows no layer with weights"),
            0u);
  EXPECT_EQ(refusal(nn::Sequential(nn::Linear(4, 4), nn::Tanh()))
                .find("--qat cannot quantize layer 1, a torch::nn::TanhImpl; it needs"),
            0u);
  EXPECT_EQ(refusal(nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 1, 3).padding(torch::kSame))))
                .find("--qat cannot quantize layer 0, whose padding is not a number of zeros"),
            0u);
}

TEST(QatNamesTest, ABatchNormalizationHasANameOfItsOwnWithoutIt) {
  EXPECT_EQ(FloatName("conv1.bn.running_var"), "bn1.running_var");
  EXPECT_EQ(FloatName("layer1.0.conv2.bn.weight"), "layer1.0.bn2.weight");
  EXPECT_EQ(FloatName("layer2.0.downsample.0.bn.bias"), "layer2.0.downsample.1.bias");
  EXPECT_EQ(FloatName("9.bn.bias"), "10.bias");
  EXPECT_EQ(FloatName("layer1.0.conv1.weight"), "layer1.0.conv1.weight");
}

TEST(QatOptionsTest, RangesStandStillInTheLastThird) {
  const QatOptions options;
  EXPECT_EQ(options.FreezeEpoch(1), 1);
  EXPECT_EQ(options.FreezeEpoch(2), 2);
  EXPECT_EQ(options.FreezeEpoch(3), 2);
  EXPECT_EQ(options.FreezeEpoch(10), 7);
  EXPECT_EQ(QatOptions{.freeze_epoch = 4}.FreezeEpoch(10), 4);
}

}  // namespace
}  // namespace muster::trainer
