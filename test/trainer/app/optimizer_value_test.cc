#include "trainer/optim/optimizer.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

OptimizerState TwoGroups() {
  OptimizerState state;
  state.groups = {{{{"lr", 0.5}, {"betas", std::pair(0.9, 0.999)}, {"foreach", std::monostate()}},
                   {"a.weight", "b.weight"}},
                  {{{"lr", 0.5}}, {"a.bias"}}};
  state.parameters = {{"a.bias", {{"momentum_buffer", at::ones({3})}}},
                      {"b.weight", {{"momentum_buffer", at::zeros({2, 3})}}}};
  return state;
}

TEST(OptimizerValueTest, IsWhatPythonWouldHave) {
  const Value value = OptimizerStateValue(TwoGroups());
  const Value& second = (*value.Find("param_groups")->list())[1];
  EXPECT_EQ(*(*second.Find("params")->list())[0].integer(), 2) << "numbered through the groups";
  const Value* state = value.Find("state");
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->Find(ValueKey(std::int64_t{0})), nullptr) << "took no step yet";
  ASSERT_NE(state->Find(ValueKey(std::int64_t{2})), nullptr);
  const Value* momentum = state->Find(ValueKey(std::int64_t{2}))->Find("momentum_buffer");
  ASSERT_NE(momentum, nullptr);
  EXPECT_TRUE(momentum->tensor()->equal(at::ones({3})));
}

TEST(OptimizerValueTest, ComesBackByName) {
  const auto back = ReadOptimizerState(OptimizerStateValue(TwoGroups()));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->groups.size(), 2u);
  EXPECT_EQ(back->groups[0].parameters, (std::vector<std::string>{"a.weight", "b.weight"}));
  ASSERT_EQ(back->parameters.size(), 2u);
  EXPECT_EQ(back->parameters[0].parameter, "a.bias");
  EXPECT_EQ(back->parameters[0].tensors[0].name, "momentum_buffer");
  EXPECT_TRUE(back->parameters[1].tensors[0].tensor.equal(at::zeros({2, 3})));
}

TEST(OptimizerValueTest, SomethingElseIsRefused) {
  EXPECT_FALSE(ReadOptimizerState(Value()).ok());
  Dict unnamed;
  unnamed.Set("state", Dict());
  unnamed.Set("param_groups", Value::List{Dict()});
  EXPECT_EQ(ReadOptimizerState(unnamed).status().message(),
            "the optimizer's state does not name its parameters");
  Dict stray = *OptimizerStateValue(TwoGroups()).dict();
  Dict state;
  state.Set(std::int64_t{9}, Dict());
  stray.Set("state", state);
  EXPECT_EQ(ReadOptimizerState(stray).status().message(),
            "the optimizer's state has parameter 9, which no group has");
}

}  // namespace
}  // namespace muster::trainer
