// A backward pass in two halves against one in one.
#include "trainer/parallel/autograd_graph.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>
#include <vector>

#include "test/trainer/models/counting_allocator.h"
#include "trainer/models/autocast.h"
#include "trainer/models/gpt.h"
#include "trainer/models/model.h"

namespace muster::trainer {
namespace {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const at::Tensor& x)>;

// Runs `function` twice on each of two inputs, backward at once and in halves, the second halves
// after both first ones. Expects equal bits.
void ExpectSame(const Function& function, const Tensors& parameters, const at::Tensor& inputs) {
  const auto take = [](at::Tensor tensor) {
    at::Tensor gradient = tensor.grad();
    tensor.mutable_grad() = at::Tensor();
    return gradient;
  };
  Tensors expected;
  Tensors inputs_expected;
  const Tensors starts = {inputs, inputs * 0.5};
  Tensors gradients;
  for (const at::Tensor& start : starts) {
    const at::Tensor x = start.detach().requires_grad_();
    const at::Tensor y = function(x);
    gradients.push_back(at::randn(y.sizes(), y.options().requires_grad(false)));
    torch::autograd::backward({y}, {gradients.back()});
    inputs_expected.push_back(x.grad());
  }
  for (const at::Tensor& parameter : parameters) expected.push_back(take(parameter));

  std::vector<std::function<void()>> later;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const at::Tensor x = starts[i].detach().requires_grad_();
    SplitBackward halves = BackwardOfInputs(function(x), gradients[i], x);
    ASSERT_TRUE(halves.input_gradient.defined());
    EXPECT_TRUE(halves.input_gradient.equal(inputs_expected[i]));
    EXPECT_FALSE(x.grad().defined());
    later.push_back(std::move(halves.weights));
  }
  for (const auto& weights : later) weights();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor got = take(parameters[i]);
    ASSERT_EQ(got.defined(), expected[i].defined()) << "parameter " << i;
    EXPECT_TRUE(!got.defined() || got.equal(expected[i])) << "parameter " << i;
  }
}

at::Tensor Parameter(at::IntArrayRef sizes) {
  return at::randn(sizes).requires_grad_();
}

TEST(SplitBackwardTest, ABlockOfAGpt) {
  const DataShape text = {.kind = DataShape::Kind::kText, .classes = 20, .context = 6};
  const auto model = MakeModel(GptRecipe({.layers = 2, .heads = 2, .width = 8}), text).value();
  Tensors parameters;
  for (const NamedTensor& one : model->ParametersOf({1, 4})) parameters.push_back(one.tensor);
  const Function blocks = [&](const at::Tensor& x) { return model->ForwardPart({}, {1, 4}, x); };
  ExpectSame(blocks, parameters, at::randn({3, 6, 8}));
  const Function cast = [&](const at::Tensor& x) {
    const Autocast autocast(at::kBFloat16, /*cuda=*/false);
    return blocks(x);
  };
  ExpectSame(cast, parameters, at::randn({3, 6, 8}));
}

TEST(SplitBackwardTest, AParameterThatSeveralOperationsUse) {
  const at::Tensor w = Parameter({5, 5});
  const at::Tensor b = Parameter({5});
  const at::Tensor u = Parameter({5});
  ExpectSame(
      [&](const at::Tensor& x) {
        const at::Tensor y = at::tanh(at::linear(x, w, b));
        return at::linear(at::layer_norm(y, {5}, u, b), w) * u;
      },
      {w, b, u}, at::randn({4, 5}));
}

TEST(SplitBackwardTest, OneThatReachesTheOutputsBesideTheInputs) {
  const at::Tensor w = Parameter({5, 5});
  const at::Tensor deep = Parameter({5});
  const at::Tensor unused = Parameter({5});
  ExpectSame([&](const at::Tensor& x) { return at::linear(x, w.tanh() * deep.exp()) + deep; },
             {w, deep, unused}, at::randn({4, 5}));
}

// Doubles x and scales it by w; counts how often it runs backward.
struct Scaled : torch::autograd::Function<Scaled> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& w) {
    context->save_for_backward({x, w});
    return x * w * 2;
  }
  static Tensors backward(torch::autograd::AutogradContext* context, Tensors gradients) {
    ++backwards;
    const Tensors saved = context->get_saved_variables();
    return {gradients[0] * saved[1] * 2, (gradients[0] * saved[0] * 2).sum(0)};
  }
  static int backwards;
};
int Scaled::backwards = 0;

TEST(SplitBackwardTest, AFunctionOfOnesOwnRunsOnce) {
  const at::Tensor w = Parameter({5});
  const at::Tensor v = Parameter({5, 5});
  const Function function = [&](const at::Tensor& x) {
    return at::linear(Scaled::apply(at::linear(x, v), w), v);
  };
  ExpectSame(function, {w, v}, at::randn({4, 5}));
  EXPECT_EQ(Scaled::backwards, 4);
}

TEST(SplitBackwardTest, WithoutInputsItIsABackward) {
  const at::Tensor table = Parameter({7, 3});
  const at::Tensor tokens = at::randint(7, {4}, at::kLong);
  const at::Tensor y = at::embedding(table, tokens);
  const SplitBackward halves = BackwardOfInputs(y, at::ones_like(y), tokens);
  EXPECT_FALSE(halves.input_gradient.defined());
  EXPECT_EQ(table.grad().sum().item<float>(), 12);
  halves.weights();
  EXPECT_EQ(table.grad().sum().item<float>(), 12);
  // Outputs that do not depend on the inputs.
  const at::Tensor x = at::zeros({4}).requires_grad_();
  const at::Tensor z = at::embedding(table, tokens);
  EXPECT_FALSE(BackwardOfInputs(z, at::ones_like(z), x).input_gradient.defined());
  EXPECT_EQ(table.grad().sum().item<float>(), 24);
}

TEST(SplitBackwardTest, FreesWhatWeightsDoNotNeed) {
  CountTensors();
  constexpr std::int64_t kRows = 256;
  constexpr std::int64_t kWidth = 64;
  constexpr std::int64_t kActivation = kRows * kWidth * 4;
  const at::Tensor w = Parameter({kWidth, kWidth});
  const at::Tensor x = at::randn({kRows, kWidth}).requires_grad_();
  const at::Tensor gradient = at::randn({kRows, kWidth});
  const std::int64_t before = BytesOfTensors();
  at::Tensor y = at::linear(x, w);
  for (int i = 0; i < 10; ++i) y = at::tanh(y);  // each keeps its result
  EXPECT_EQ(BytesOfTensors() - before, 11 * kActivation - kActivation);
  SplitBackward halves = BackwardOfInputs(y, gradient, x);
  y = at::Tensor();
  halves.input_gradient = at::Tensor();
  // The gradient of what the matrix was multiplied with; x was there before.
  EXPECT_EQ(BytesOfTensors() - before, kActivation);
  halves.weights();
  EXPECT_EQ(BytesOfTensors() - before, kWidth * kWidth * 4);
}

}  // namespace
}  // namespace muster::trainer
