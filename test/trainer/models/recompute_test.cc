// Models that recompute activations, against the same models that keep them.
#include "trainer/models/autocast.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdio>

#include "test/trainer/models/counting_allocator.h"
#include "test/trainer/models/dropping_network.h"
#include "trainer/models/gpt.h"
#include "trainer/models/image_models.h"
#include "trainer/models/model.h"

namespace muster::trainer {
namespace {

constexpr DataShape kRows = {.kind = DataShape::Kind::kSamples, .classes = 10};
constexpr DataShape kRecomputeText = {.kind = DataShape::Kind::kText, .classes = 32, .context = 8};

std::unique_ptr<Model> MakeRecompute(const ModelRecipe& recipe, const DataShape& shape,
                                     bool recompute) {
  auto model = MakeModel(recipe, shape, {.seed = 3, .recompute = recompute});
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// A model that keeps activations, and one that does not.
struct Pair {
  Pair(const ModelRecipe& recipe, const DataShape& shape)
      : kept(MakeRecompute(recipe, shape, false)), again(MakeRecompute(recipe, shape, true)) {}

  void ExpectSame() const {
    const std::vector<NamedTensor> expected = kept->StateDict();
    const std::vector<NamedTensor> got = again->StateDict();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(got[i].tensor.equal(expected[i].tensor)) << got[i].name;
      if (!expected[i].tensor.requires_grad()) continue;
      ASSERT_TRUE(got[i].tensor.grad().defined()) << got[i].name;
      EXPECT_TRUE(got[i].tensor.grad().equal(expected[i].tensor.grad())) << got[i].name;
    }
  }

  const std::unique_ptr<Model> kept;
  const std::unique_ptr<Model> again;
};

TEST(RecomputeTest, GradientsRandomNumbersAndBuffersAreThoseWithout) {
  const Pair pair(DroppingRecipe(6, 16), kRows);
  for (std::int64_t step = 0; step < 3; ++step) {
    // Two micro-batches under way at once, as in a pipeline.
    const at::Tensor rows = at::randn({2, 12, 16});
    for (Model* model : {pair.kept.get(), pair.again.get()}) {
      std::vector<at::Tensor> losses;
      for (std::int64_t i = 0; i < 2; ++i) {
        const RandomPlace place = {.seed = 7, .step = step, .micro_batch = i, .data_rank = 1};
        losses.push_back(model->ForwardAt(place, rows[i]).square().sum());
      }
      for (const at::Tensor& loss : losses) loss.backward();
    }
    pair.ExpectSame();
  }
  EXPECT_EQ(pair.again->Buffers()[2].tensor.item<std::int64_t>(), 6) << "batches seen once each";
  pair.kept->SetTraining(false);
  pair.again->SetTraining(false);
  const at::Tensor rows = at::randn({4, 16});
  EXPECT_TRUE(pair.again->Forward(rows).equal(pair.kept->Forward(rows)));
}

TEST(RecomputeTest, BatchNormOfAResNetLearnsOnce) {
  const Pair pair(ResNet18Recipe(), {});
  const at::Tensor images = at::randn({4, 1, 28, 28});
  for (Model* model : {pair.kept.get(), pair.again.get()}) {
    model->ForwardAt({}, images).square().sum().backward();
  }
  pair.ExpectSame();
}

TEST(RecomputeTest, AutocastIsTurnedOnAgain) {
  const Pair pair(DroppingRecipe(3, 16), kRows);
  const at::Tensor rows = at::randn({12, 16});
  for (Model* model : {pair.kept.get(), pair.again.get()}) {
    at::Tensor loss;
    {
      const Autocast autocast(at::kBFloat16, /*cuda=*/false);
      loss = model->ForwardAt({}, rows).to(at::kFloat).square().sum();
    }
    loss.backward();
    EXPECT_FALSE(AutocastOf(/*cuda=*/false));
  }
  pair.ExpectSame();
}

// A GPT's head found the embeddings in the cache that a pass without gradients had cast, and they
// did not learn from it.
TEST(RecomputeTest, TiedWeightsLearnFromBothEndsUnderAutocast) {
  const ModelRecipe gpt = GptRecipe({.layers = 2, .heads = 2, .width = 16, .tie_weights = true});
  const Pair pair(gpt, kRecomputeText);
  const at::Tensor tokens = at::randint(32, {4, 8}, at::kLong);
  for (Model* model : {pair.kept.get(), pair.again.get()}) {
    at::Tensor loss;
    {
      const Autocast autocast(at::kBFloat16, /*cuda=*/false);
      loss = model->ForwardAt({}, tokens).to(at::kFloat).square().sum();
    }
    loss.backward();
  }
  pair.ExpectSame();
}

TEST(RecomputeTest, WithoutGradientsItIsAForward) {
  const at::NoGradGuard no_grad;
  int calls = 0;
  const auto twice = [&](const at::Tensor& x) {
    ++calls;
    return x * 2;
  };
  EXPECT_FALSE(Recomputed(at::ones({2}).requires_grad_(), {twice, {}}).requires_grad());
  EXPECT_EQ(calls, 1);
}

TEST(RecomputeTest, WhatNobodyLearnsFromIsNotComputedAgain) {
  int calls = 0;
  const auto twice = [&](const at::Tensor& x) {
    ++calls;
    return x * 2;
  };
  const at::Tensor fixed = Recomputed(at::ones({2}), {twice, {}, /*has_parameters=*/false});
  EXPECT_FALSE(fixed.requires_grad());
  const at::Tensor x = at::ones({2}).requires_grad_();
  Recomputed(x, {twice, {}, /*has_parameters=*/false}).sum().backward();
  EXPECT_TRUE(x.grad().equal(at::full({2}, 2.0)));
  EXPECT_EQ(calls, 3);
}

TEST(RecomputeTest, StagesGoBackwardAsTheScopeSays) {
  const at::Tensor w = at::randn({3}).requires_grad_();
  const at::Tensor x = at::randn({3}).requires_grad_();
  const auto times_w = [&](const at::Tensor& inputs) { return inputs * w; };
  at::Tensor kept;
  const StageBackward run = [&](const at::Tensor& outputs, const at::Tensor& gradient,
                                const at::Tensor& inputs) {
    kept = outputs;
    return torch::autograd::grad({outputs}, {inputs}, {gradient}, /*retain_graph=*/true)[0];
  };
  const at::Tensor y = Recomputed(x, {times_w, {}});
  {
    const StageBackwardScope scope(run);
    y.sum().backward();
  }
  EXPECT_TRUE(x.grad().equal(w));
  EXPECT_FALSE(w.grad().defined()) << "left to whoever runs the rest";
  kept.sum().backward();
  EXPECT_TRUE(w.grad().equal(x));
  Recomputed(x, {times_w, {}}).sum().backward();
  EXPECT_TRUE(w.grad().equal(2 * x));
}

TEST(RecomputeTest, KeepsTheInputsOfStagesAlone) {
  constexpr std::int64_t kRowsOfData = 512;
  constexpr std::int64_t kWidth = 256;
  constexpr int kBlocks = 8;
  const auto kept_after_forward = [](bool recompute) {
    const auto model = MakeRecompute(DroppingRecipe(kBlocks, kWidth), kRows, recompute);
    const at::Tensor rows = at::randn({kRowsOfData, kWidth});
    const std::int64_t before = BytesOfTensors();
    const at::Tensor outputs = model->ForwardAt({}, rows);
    return BytesOfTensors() - before;
  };
  CountTensors();
  const std::int64_t all = kept_after_forward(false);
  const std::int64_t inputs = kept_after_forward(true);
  std::printf("kept after forward: %.1f MB, recomputed %.1f MB\n", static_cast<double>(all) / 1e6,
              static_cast<double>(inputs) / 1e6);
  // Each block's outputs are the next stage's inputs; the rows themselves were there before.
  constexpr std::int64_t kActivation = kRowsOfData * kWidth * 4;
  EXPECT_GE(inputs, kBlocks * kActivation);
  EXPECT_LT(inputs, kBlocks * kActivation + kActivation / 4);
  // Of a block: both layers' wide activations, the layers' inputs, and what dropout keeps.
  EXPECT_GT(all, kBlocks * 9 * kActivation);
}

}  // namespace
}  // namespace muster::trainer
