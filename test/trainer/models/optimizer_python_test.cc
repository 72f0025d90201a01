// Compares the reference optimizers with torch.optim in this machine's Python: from the same
// parameters and gradients, ten steps give the same bits.
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "test/trainer/models/python.h"
#include "test/trainer/program.h"
#include "trainer/optim/gradients.h"
#include "trainer/optim/optimizer.h"

namespace muster::trainer {
namespace {

constexpr int kOptimizerSteps = 10;
constexpr int kParameters = 4;

struct OptimizerCase {
  std::string name;  // in optimizers.py
  OptimizerOptions options;
};

std::vector<OptimizerCase> OptimizerCases() {
  constexpr OptimizerPath kReference = OptimizerPath::kReference;
  const OptimizerOptions nesterov{
      .path = kReference, .weight_decay = 5e-4, .momentum = 0.9, .nesterov = true};
  const OptimizerOptions adamw{
      .kind = OptimizerKind::kAdamW, .path = kReference, .weight_decay = 0.1};
  return {
      {"sgd", {.path = kReference, .momentum = 0}},
      {"momentum", {.path = kReference}},
      {"nesterov", nesterov},
      {"nesterov-float64", nesterov},
      {"decay", {.path = kReference, .weight_decay = 0.01, .momentum = 0.8}},
      {"groups", {.path = kReference, .weight_decay = 0.01, .decay_vectors = false}},
      {"adamw", adamw},
      {"adamw-float64", adamw},
      {"adamw-betas",
       {.kind = OptimizerKind::kAdamW,
        .path = kReference,
        .beta1 = 0.8,
        .beta2 = 0.95,
        .epsilon = 1e-6}},
  };
}

std::string Numbered(const std::string& name, std::size_t i) {
  return name + ":" + std::to_string(i);
}

// Takes the script's ten steps. The parameters are named by their numbers in the script.
void TakeSteps(const std::vector<NamedTensor>& python, const std::vector<NamedTensor>& parameters,
               Optimizer& optimizer) {
  for (int step = 0; step < kOptimizerSteps; ++step) {
    for (int i = 0; i < kParameters; ++i) {
      const std::string name = "grad:" + std::to_string(step) + ":" + std::to_string(i);
      const bool given = i != 3 || step >= 3;
      parameters[static_cast<std::size_t>(i)].tensor.mutable_grad() =
          given ? Find(python, name) : at::Tensor();
    }
    optimizer.Step(0.1 / (step + 1));
  }
}

class OptimizerPythonTest : public testing::TestWithParam<OptimizerCase> {
 protected:
  // Asks Python about all of them at once, as it takes longer to start than to compute.
  static void SetUpTestSuite() {
    if (!PythonHasTorch()) return;
    std::vector<std::string> arguments = {TestFile("optimizer-")};
    for (const OptimizerCase& item : OptimizerCases()) arguments.push_back(item.name);
    printed_ = RunPython("test/trainer/optim/testdata/optimizers.py", arguments);
  }

  // Makes the script's parameters and optimizer.
  void SetUp() override {
    if (!PythonHasTorch()) GTEST_SKIP() << "needs Debian's python3-torch";
    python_ = ReadTensors(TestFile("optimizer-" + GetParam().name));
    for (int i = 0; i < kParameters; ++i) {
      const at::Tensor before = Find(python_, "before:" + std::to_string(i));
      parameters_.push_back({std::to_string(i), before.clone().set_requires_grad(true)});
    }
    auto made = MakeOptimizer(GetParam().options, parameters_);
    ASSERT_TRUE(made.ok()) << made.status();
    optimizer_ = *std::move(made);
  }

  static inline std::string printed_;  // by the script
  std::vector<NamedTensor> python_;
  std::vector<NamedTensor> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
};

TEST_P(OptimizerPythonTest, TenStepsAreBitForBitPythons) {
  TakeSteps(python_, parameters_, *optimizer_);
  for (const NamedTensor& parameter : parameters_) {
    EXPECT_TRUE(parameter.tensor.equal(Find(python_, "after:" + parameter.name))) << parameter.name;
  }
}

TEST_P(OptimizerPythonTest, StateIsWhatPythonSaves) {
  TakeSteps(python_, parameters_, *optimizer_);
  const OptimizerState state = optimizer_->State(0.01);
  const std::vector<std::string> order = optimizer_->Order();
  std::size_t tensors = 0;
  for (const ParameterState& parameter : state.parameters) {
    const auto number = static_cast<std::size_t>(
        std::find(order.begin(), order.end(), parameter.parameter) - order.begin());
    for (const NamedTensor& item : parameter.tensors) {
      EXPECT_TRUE(item.tensor.equal(Find(python_, Numbered(item.name, number))))
          << item.name << " of " << parameter.parameter;
      ++tensors;
    }
  }
  const auto theirs = std::count_if(python_.begin(), python_.end(), [](const NamedTensor& item) {
    return item.name.rfind("momentum", 0) == 0 || item.name.rfind("exp_", 0) == 0 ||
           item.name.rfind("step", 0) == 0;
  });
  EXPECT_EQ(tensors, static_cast<std::size_t>(theirs));
}

// Each of our keys is among Python's, with its value.
TEST_P(OptimizerPythonTest, GroupsAreDescribedInPythonsWords) {
  const OptimizerState state = optimizer_->State(0.01);
  std::istringstream lines(printed_);
  std::size_t matched = 0;
  std::string kind;
  std::string key;
  std::string value;
  while (lines >> kind >> key && std::getline(lines >> std::ws, value)) {
    if (kind != GetParam().name) continue;
    for (const auto& [name, ours] : state.groups.back().options) {
      if (name != key) continue;
      ++matched;
      if (std::holds_alternative<double>(ours)) {
        EXPECT_DOUBLE_EQ(std::get<double>(ours), std::stod(value)) << name;
      } else if (std::holds_alternative<bool>(ours)) {
        EXPECT_EQ(std::get<bool>(ours) ? "True" : "False", value) << name;
      } else if (std::holds_alternative<std::pair<double, double>>(ours)) {
        std::ostringstream text;
        const auto& [first, second] = std::get<std::pair<double, double>>(ours);
        text << "(" << first << ", " << second << ")";
        EXPECT_EQ(text.str(), value) << name;
      } else {
        EXPECT_EQ(value, "None") << name;
      }
    }
  }
  EXPECT_EQ(matched, state.groups.back().options.size()) << printed_;
}

INSTANTIATE_TEST_SUITE_P(Optimizers, OptimizerPythonTest, testing::ValuesIn(OptimizerCases()),
                         [](const testing::TestParamInfo<OptimizerCase>& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ClipPythonTest, ScalesAsPythonDoesBitForBit) {
  if (!PythonHasTorch()) GTEST_SKIP() << "needs Debian's python3-torch";
  RunPython("test/trainer/optim/testdata/clip.py", {TestFile("clip-"), "1.5", "1000000"});
  for (const std::string max_norm : {"1.5", "1000000"}) {
    const std::vector<NamedTensor> python = ReadTensors(TestFile("clip-" + max_norm));
    std::vector<NamedTensor> parameters;
    for (int i = 0; i < 2; ++i) {
      const at::Tensor gradient = Find(python, "before:" + std::to_string(i));
      parameters.push_back({"", at::zeros_like(gradient).set_requires_grad(true)});
      parameters.back().tensor.mutable_grad() = gradient;
    }
    parameters.push_back({"", at::zeros({2, 3, 4}).set_requires_grad(true)});
    EXPECT_EQ(ClipGradientNorm(parameters, std::stod(max_norm)).item<double>(),
              Find(python, "norm").item<double>());
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(parameters[i].tensor.grad().equal(Find(python, Numbered("after", i))));
    }
  }
}

}  // namespace
}  // namespace muster::trainer
