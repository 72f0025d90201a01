#include "trainer/io/state_dict.h"

#include <gtest/gtest.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

namespace muster::trainer {
namespace {

// Two parameters and a counter, all zero.
std::vector<NamedTensor> Targets(const std::string& prefix = "") {
  return {{prefix + "fc.weight", at::zeros({2, 3}).requires_grad_()},
          {prefix + "fc.bias", at::zeros({2}).requires_grad_()},
          {prefix + "steps", at::zeros({}, at::kLong)}};
}

Value State(const std::string& prefix = "") {
  return StateDictValue({{prefix + "fc.weight", at::ones({2, 3})},
                         {prefix + "fc.bias", at::full({2}, 2.0)},
                         {prefix + "steps", at::full({}, 7, at::kLong)}});
}

double Sum(const std::vector<NamedTensor>& tensors) {
  double sum = 0;
  for (const NamedTensor& named : tensors) sum += named.tensor.sum().item<double>();
  return sum;
}
constexpr double kLoaded = 6 + 4 + 7;

TEST(StateDictTest, EachTensorGoesToItsTargetByName) {
  const std::vector<NamedTensor> targets = Targets();
  const auto report = LoadStateDict(State(), targets);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->complete());
  EXPECT_EQ(report->Sentence(), "All keys matched successfully");
  EXPECT_EQ(Sum(targets), kLoaded);
  EXPECT_TRUE(targets[0].tensor.is_leaf());
}

TEST(StateDictTest, DtypesAreConverted) {
  const at::Tensor target = at::zeros({2}, at::kBFloat16);
  ASSERT_TRUE(
      LoadStateDict(StateDictValue({{"w", at::full({2}, 1.5, at::kDouble)}}), {{"w", target}})
          .ok());
  EXPECT_EQ(target.scalar_type(), at::kBFloat16);
  EXPECT_EQ(target.sum().item<double>(), 3.0);
}

TEST(StateDictTest, ThePrefixOfPythonsDdpIsStrippedOrAddedAsNeeded) {
  for (const std::string from : {"", "module."}) {
    for (const std::string to : {"", "module."}) {
      const std::vector<NamedTensor> targets = Targets(to);
      ASSERT_TRUE(LoadStateDict(State(from), targets).ok()) << from << " " << to;
      EXPECT_EQ(Sum(targets), kLoaded);
    }
  }
  EXPECT_TRUE(LoadStateDict(State("module."), Targets(), {.prefix = ModulePrefix::kStrip}).ok());
  EXPECT_TRUE(LoadStateDict(State(), Targets("module."), {.prefix = ModulePrefix::kAdd}).ok());
  EXPECT_TRUE(LoadStateDict(State(), Targets(), {.prefix = ModulePrefix::kStrip}).ok());
  EXPECT_FALSE(LoadStateDict(State("module."), Targets(), {.prefix = ModulePrefix::kAsIs}).ok());
}

TEST(StateDictTest, NamesThatFallTogetherWithoutThePrefixAreRefused) {
  const Value state = StateDictValue({{"module.w", at::ones({1})}, {"w", at::ones({1})}});
  EXPECT_EQ(LoadStateDict(state, {{"w", at::ones({1})}}, {.prefix = ModulePrefix::kStrip})
                .status()
                .message(),
            "the state dict has w with and without module.");
}

TEST(StateDictTest, StrictLoadingTellsAllThatIsWrongAndChangesNothing) {
  const std::vector<NamedTensor> targets = Targets();
  const Value state = StateDictValue({{"fc.weight", at::ones({4, 3})},
                                      {"fc.bias", at::ones({2})},
                                      {"head.bias", at::ones({1})},
                                      {"head.weight", at::ones({1})}});
  const absl::Status status = LoadStateDict(state, targets).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "Missing key(s) in state_dict: \"steps\". Unexpected key(s) in state_dict: "
      "\"head.bias\", \"head.weight\". size mismatch for fc.weight: copying a param with shape "
      "torch.Size([4, 3]) from checkpoint, the shape in current model is torch.Size([2, 3]).");
  EXPECT_EQ(Sum(targets), 0.0);

  const auto report = LoadStateDict(state, targets, {.strict = false});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->missing, std::vector<std::string>{"steps"});
  EXPECT_EQ(report->unexpected, (std::vector<std::string>{"head.bias", "head.weight"}));
  EXPECT_EQ(report->mismatched.size(), 1u);
  EXPECT_EQ(Sum(targets), 2.0);  // the bias
}

TEST(StateDictTest, AHundredMissingNamesMakeOneLine) {
  std::vector<NamedTensor> targets;
  for (int i = 0; i < 100; ++i) targets.push_back({"w" + std::to_string(i), at::ones({1})});
  EXPECT_EQ(LoadStateDict(Dict(), targets).status().message(),
            "Missing key(s) in state_dict: \"w0\", \"w1\", \"w2\", \"w3\", \"w4\", \"w5\", \"w6\", "
            "\"w7\", 92 more.");
}

TEST(StateDictTest, TheStateDictIsFoundInACheckpoint) {
  Dict checkpoint;
  checkpoint.Set("epoch", 3);
  EXPECT_FALSE(FindStateDict(checkpoint).ok());
  EXPECT_EQ(LoadStateDict(checkpoint, Targets()).status().message(),
            "the state dict has 'epoch' of type int, not a Tensor with a name");
  EXPECT_EQ(LoadStateDict(Value::List{}, Targets()).status().message(),
            "the state dict is of type list");
  checkpoint.Set("model_state_dict", State());
  const Value value(checkpoint);
  ASSERT_TRUE(FindStateDict(value).ok());
  EXPECT_EQ(*FindStateDict(value), value.Find("model_state_dict"));
  const Value plain = State();
  EXPECT_EQ(*FindStateDict(plain), &plain);
}

}  // namespace
}  // namespace muster::trainer
