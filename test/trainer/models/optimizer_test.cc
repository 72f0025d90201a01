#include "trainer/optim/optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "trainer/optim/gradients.h"

namespace muster::trainer {
namespace {

// Parameters of several shapes, the same each time. One is too large for a single thread's part.
std::vector<NamedTensor> Parameters(at::ScalarType dtype = at::kFloat) {
  at::manual_seed(1);
  std::vector<NamedTensor> parameters;
  parameters.push_back({"conv.weight", at::randn({8, 3, 3, 3}, dtype)});
  parameters.push_back({"conv.bias", at::randn({8}, dtype)});
  parameters.push_back({"fc.weight", at::randn({333, 301}, dtype)});
  for (NamedTensor& parameter : parameters) parameter.tensor.set_requires_grad(true);
  return parameters;
}

// The gradients of step `step`, the same each time.
void GiveGradients(const std::vector<NamedTensor>& parameters, int step) {
  at::manual_seed(static_cast<std::uint64_t>(100 + step));
  for (const NamedTensor& parameter : parameters) {
    parameter.tensor.mutable_grad() =
        at::randn(parameter.tensor.sizes(), parameter.tensor.options().requires_grad(false));
  }
}

void TakeOptimizerSteps(const std::vector<NamedTensor>& parameters, Optimizer& optimizer, int begin,
                        int end) {
  for (int step = begin; step < end; ++step) {
    GiveGradients(parameters, step);
    optimizer.Step(0.01 * (step + 1));
  }
}

std::unique_ptr<Optimizer> OptimizerFor(const OptimizerOptions& options,
                                        const std::vector<NamedTensor>& parameters) {
  auto made = MakeOptimizer(options, parameters);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

double OptimizerDifference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

// Everything that changes what is computed.
std::vector<OptimizerOptions> AllOptions() {
  return {
      {.momentum = 0},
      {.weight_decay = 0.01, .momentum = 0},
      {.momentum = 0.9},
      {.weight_decay = 0.01, .momentum = 0.9},
      {.weight_decay = 0.01, .momentum = 0.9, .nesterov = true},
      {.weight_decay = 0.1, .decay_vectors = false, .momentum = 0.9},
      {.kind = OptimizerKind::kAdamW},
      {.kind = OptimizerKind::kAdamW, .weight_decay = 0.1, .decay_vectors = false},
      {.kind = OptimizerKind::kAdamW, .weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.9},
  };
}

// Ten steps by `path` and by the reference; `prepare` may change the parameters' layout first.
void ComparePaths(OptimizerPath path, at::ScalarType dtype, double limit,
                  const std::function<void(std::vector<NamedTensor>&)>& prepare) {
  int number = 0;
  for (OptimizerOptions options : AllOptions()) {
    SCOPED_TRACE(number++);
    std::vector<NamedTensor> expected = Parameters(dtype);
    std::vector<NamedTensor> parameters = Parameters(dtype);
    prepare(parameters);
    options.path = OptimizerPath::kReference;
    const auto reference = OptimizerFor(options, expected);
    options.path = path;
    const auto fast = OptimizerFor(options, parameters);
    TakeOptimizerSteps(expected, *reference, 0, 10);
    TakeOptimizerSteps(parameters, *fast, 0, 10);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_LT(OptimizerDifference(parameters[i].tensor, expected[i].tensor), limit)
          << parameters[i].name;
    }
    // And their states.
    const OptimizerState ours = fast->State(0);
    const OptimizerState theirs = reference->State(0);
    ASSERT_EQ(ours.parameters.size(), theirs.parameters.size());
    for (std::size_t i = 0; i < ours.parameters.size(); ++i) {
      for (std::size_t j = 0; j < ours.parameters[i].tensors.size(); ++j) {
        EXPECT_EQ(ours.parameters[i].tensors[j].name, theirs.parameters[i].tensors[j].name);
        EXPECT_LT(OptimizerDifference(ours.parameters[i].tensors[j].tensor,
                                      theirs.parameters[i].tensors[j].tensor),
                  limit);
      }
    }
  }
}

TEST(OptimizerTest, OnePassAndForeachGiveWhatTheReferenceGives) {
  for (const OptimizerPath path : {OptimizerPath::kOnePass, OptimizerPath::kForeach}) {
    ComparePaths(path, at::kFloat, 1e-6, [](auto&) {});
    ComparePaths(path, at::kDouble, 1e-14, [](auto&) {});
  }
}

TEST(OptimizerTest, OnePassGivesTheSameOnSeveralThreads) {
  const int before = at::get_num_threads();
  for (const OptimizerOptions& options : AllOptions()) {
    std::vector<NamedTensor> alone = Parameters();
    std::vector<NamedTensor> together = Parameters();
    const auto first = OptimizerFor(options, alone);
    const auto second = OptimizerFor(options, together);
    at::set_num_threads(1);
    TakeOptimizerSteps(alone, *first, 0, 3);
    at::set_num_threads(3);
    TakeOptimizerSteps(together, *second, 0, 3);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(alone[i].tensor.equal(together[i].tensor)) << alone[i].name;
    }
  }
  at::set_num_threads(before);
}

TEST(OptimizerTest, OnePassAndForeachTakeWeightsWithChannelsInnermost) {
  for (const OptimizerPath path : {OptimizerPath::kOnePass, OptimizerPath::kForeach}) {
    // The gradients keep their layout, which now differs from the parameters'.
    ComparePaths(path, at::kFloat, 1e-6, [](std::vector<NamedTensor>& parameters) {
      at::Tensor& weight = parameters[0].tensor;
      weight = weight.detach().contiguous(at::MemoryFormat::ChannelsLast).set_requires_grad(true);
      ASSERT_FALSE(weight.is_contiguous());
    });
  }
}

TEST(OptimizerTest, OnePassLeavesHalfPrecisionToTheReference) {
  for (OptimizerOptions options : AllOptions()) {
    std::vector<NamedTensor> expected = Parameters(at::kBFloat16);
    std::vector<NamedTensor> parameters = Parameters(at::kBFloat16);
    options.path = OptimizerPath::kReference;
    const auto reference = OptimizerFor(options, expected);
    options.path = OptimizerPath::kOnePass;
    const auto one_pass = OptimizerFor(options, parameters);
    TakeOptimizerSteps(expected, *reference, 0, 3);
    TakeOptimizerSteps(parameters, *one_pass, 0, 3);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_TRUE(parameters[i].tensor.equal(expected[i].tensor)) << parameters[i].name;
    }
  }
}

TEST(OptimizerTest, ParameterWithoutGradientIsLeftAlone) {
  for (const OptimizerOptions& options : AllOptions()) {
    std::vector<NamedTensor> parameters = Parameters();
    const auto optimizer = OptimizerFor(options, parameters);
    GiveGradients(parameters, 0);
    parameters[1].tensor.mutable_grad().reset();
    const at::Tensor before = parameters[1].tensor.detach().clone();
    const at::Tensor other = parameters[0].tensor.detach().clone();
    optimizer->Step(0.1);
    EXPECT_TRUE(parameters[1].tensor.equal(before));
    EXPECT_FALSE(parameters[0].tensor.equal(other));
  }
}

TEST(OptimizerTest, BiasesAndNormsDoNotDecayWhenAskedNotTo) {
  std::vector<NamedTensor> parameters = Parameters();
  const auto optimizer = OptimizerFor(
      {.kind = OptimizerKind::kAdamW, .weight_decay = 0.5, .decay_vectors = false}, parameters);
  EXPECT_EQ(optimizer->Order(),
            (std::vector<std::string>{"conv.weight", "fc.weight", "conv.bias"}));
  const OptimizerState state = optimizer->State(0.1);
  ASSERT_EQ(state.groups.size(), 2u);
  EXPECT_EQ(state.groups[1].parameters, (std::vector<std::string>{"conv.bias"}));
  const at::Tensor weight = parameters[2].tensor.detach().clone();
  const at::Tensor bias = parameters[1].tensor.detach().clone();
  for (const NamedTensor& parameter : parameters) {
    parameter.tensor.mutable_grad() = at::zeros_like(parameter.tensor);
  }
  optimizer->Step(0.1);
  EXPECT_TRUE(parameters[2].tensor.allclose(weight * 0.95));
  EXPECT_TRUE(parameters[1].tensor.equal(bias));
}

TEST(OptimizerTest, RunThatWasResumedIsTheOneThatWasNot) {
  for (OptimizerOptions options : AllOptions()) {
    for (const OptimizerPath path :
         {OptimizerPath::kReference, OptimizerPath::kOnePass, OptimizerPath::kForeach}) {
      options.path = path;
      std::vector<NamedTensor> expected = Parameters();
      const auto undisturbed = OptimizerFor(options, expected);
      TakeOptimizerSteps(expected, *undisturbed, 0, 8);

      std::vector<NamedTensor> first = Parameters();
      const auto stopped = OptimizerFor(options, first);
      TakeOptimizerSteps(first, *stopped, 0, 5);
      OptimizerState saved = stopped->State(0.05);
      std::vector<NamedTensor> second = Parameters();
      for (std::size_t i = 0; i < second.size(); ++i) {
        second[i].tensor.detach().copy_(first[i].tensor.detach());
      }
      const auto resumed = OptimizerFor(options, second);
      ASSERT_TRUE(resumed->Load(saved).ok());
      // Copies were taken: the other optimizer may continue.
      TakeOptimizerSteps(first, *stopped, 5, 6);
      TakeOptimizerSteps(second, *resumed, 5, 8);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(second[i].tensor.equal(expected[i].tensor)) << expected[i].name;
      }
    }
  }
}

TEST(OptimizerTest, StateThatDoesNotFitIsRefusedAndChangesNothing) {
  const OptimizerOptions options{.kind = OptimizerKind::kAdamW};
  std::vector<NamedTensor> expected = Parameters();
  std::vector<NamedTensor> parameters = Parameters();
  const auto undisturbed = OptimizerFor(options, expected);
  const auto optimizer = OptimizerFor(options, parameters);
  TakeOptimizerSteps(expected, *undisturbed, 0, 2);
  TakeOptimizerSteps(parameters, *optimizer, 0, 2);
  const OptimizerState good = optimizer->State(0.1);

  const auto refusal = [&](const std::function<void(OptimizerState&)>& spoil) {
    OptimizerState state = good;
    spoil(state);
    const absl::Status status = optimizer->Load(state);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(refusal([](auto& state) { state.parameters.back().parameter = "fc2.weight"; }),
            "load the optimizer's state of fc2.weight: there is no such parameter");
  EXPECT_EQ(refusal([](auto& state) { state.parameters.back().tensors.pop_back(); }),
            "load the optimizer's state of fc.weight: it lacks exp_avg_sq");
  EXPECT_EQ(refusal([](auto& state) { state.parameters[0].tensors[1].tensor = at::zeros({3}); }),
            "load the optimizer's state of conv.weight: exp_avg has another shape");
  EXPECT_EQ(
      refusal([](auto& state) { state.parameters[0].tensors[0].tensor = at::scalar_tensor(NAN); }),
      "load the optimizer's state of conv.weight: step nan is not one");
  EXPECT_EQ(refusal([](auto& state) {
              state.parameters[0].tensors.erase(state.parameters[0].tensors.begin());
            }),
            "load the optimizer's state of conv.weight: it lacks the step");

  TakeOptimizerSteps(expected, *undisturbed, 2, 4);
  TakeOptimizerSteps(parameters, *optimizer, 2, 4);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(parameters[i].tensor.equal(expected[i].tensor));
  }
}

TEST(OptimizerTest, StateOfMomentumFitsAnOptimizerWithoutAndTheOtherWayRound) {
  std::vector<NamedTensor> parameters = Parameters();
  const auto with = OptimizerFor({.momentum = 0.9}, parameters);
  const auto without = OptimizerFor({.momentum = 0}, parameters);
  TakeOptimizerSteps(parameters, *with, 0, 1);
  EXPECT_TRUE(without->Load(with->State(0.1)).ok());
  EXPECT_TRUE(without->State(0.1).parameters.empty());
  EXPECT_TRUE(with->Load(without->State(0.1)).ok());
  EXPECT_TRUE(with->State(0.1).parameters.empty());
  // What Python 1.13 saves of SGD without momentum: {'momentum_buffer': None}.
  EXPECT_TRUE(with->Load({.parameters = {{.parameter = "fc.weight"}}}).ok());
}

TEST(OptimizerTest, OptionsThatContradictEachOtherAreRefused) {
  const auto refusal = [](const OptimizerOptions& options) {
    const auto made = MakeOptimizer(options, Parameters());
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(made.status().message());
  };
  EXPECT_EQ(refusal({.momentum = 0, .nesterov = true}),
            "make the optimizer: Nesterov momentum needs a momentum above 0");
  EXPECT_EQ(refusal({.momentum = -1}),
            "make the optimizer: a momentum of -1, which must be at least 0");
  EXPECT_EQ(refusal({.weight_decay = NAN}),
            "make the optimizer: a weight decay of nan, which must be at least 0");
  EXPECT_EQ(refusal({.kind = OptimizerKind::kAdamW, .beta2 = 1}),
            "make the optimizer: a beta of 1, which must be at least 0 and below 1");
  EXPECT_EQ(refusal({.kind = OptimizerKind::kAdamW, .epsilon = -1}),
            "make the optimizer: an epsilon of -1, which must be at least 0");
}

TEST(ClipTest, NormIsThatOfAllGradientsAsOneVector) {
  std::vector<NamedTensor> parameters = Parameters();
  EXPECT_EQ(ClipGradientNorm(parameters, 1).item<double>(), 0);  // no parameter has a gradient
  parameters[0].tensor.mutable_grad() = at::zeros_like(parameters[0].tensor);
  parameters[0].tensor.grad().view({-1})[5] = 3;
  parameters[1].tensor.mutable_grad() = at::zeros({8});
  parameters[1].tensor.grad()[0] = 4;
  EXPECT_FLOAT_EQ(ClipGradientNorm(parameters, 10).item<double>(), 5);
  EXPECT_EQ(parameters[1].tensor.grad()[0].item<float>(), 4);
  EXPECT_FLOAT_EQ(ClipGradientNorm(parameters, 2.5).item<double>(), 5);
  EXPECT_NEAR(parameters[1].tensor.grad()[0].item<double>(), 2, 1e-6);
  EXPECT_NEAR(ClipGradientNorm(parameters, 2.5).item<double>(), 2.5, 1e-5);
}

TEST(ClipTest, NormThatIsNotFiniteIsReturned) {
  std::vector<NamedTensor> parameters = Parameters();
  parameters[1].tensor.mutable_grad() = at::full({8}, NAN);
  EXPECT_TRUE(std::isnan(ClipGradientNorm(parameters, 1).item<double>()));
}

}  // namespace
}  // namespace muster::trainer
