// Networks that are trained for 8-bit numbers, against Python's and against those of 8-bit numbers.
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <string>
#include <vector>

#include "test/trainer/models/python.h"
#include "test/trainer/program.h"
#include "trainer/models/cnn.h"
#include "trainer/models/layers.h"
#include "trainer/models/mlp.h"
#include "trainer/models/model.h"
#include "trainer/models/resnet.h"
#include "trainer/quant/int8_network.h"
#include "trainer/quant/qat_names.h"
#include "trainer/quant/qat_network.h"
#include "trainer/quant/qat_options.h"

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

// Whether products of 8-bit numbers are added up without loss.
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

// LibTorch's own operator gives such a channel a zero point that oneDNN's layers refuse.
TEST(QatNetworkTest, ConvertsChannelsWhoseWeightsAllHaveOneSign) {
  if (!AddsExactly()) GTEST_SKIP() << "needs a processor with AVX-512 VNNI";
  const auto model = Prepared(CnnRecipe());
  {
    const at::NoGradGuard no_grad;
    at::Tensor weight = NetworkIn(*model).layers()[0].weight();
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
  const auto resnet = MakeModel(QatRecipe(ResNet18Recipe()), kDigits);
  EXPECT_EQ(resnet.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(resnet.status().message().find("--qat needs a torch::nn::Sequential of Linear"),
            std::string::npos)
      << resnet.status();

  namespace nn = torch::nn;
  const auto refusal = [](const nn::Sequential& net) {
    return std::string(PrepareQat(NetworkOf(net)).status().message());
  };
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
