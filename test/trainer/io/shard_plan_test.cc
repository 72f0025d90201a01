#include "trainer/io/shard_plan.h"

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

at::Tensor Floats(std::int64_t count) {
  return at::ones({count});
}

std::vector<std::string> NamesIn(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& named : tensors) names.push_back(named.name);
  return names;
}

TEST(ShardPlanTest, TensorsAreNamedForWhatTheyAre) {
  Dict model(/*ordered=*/true);
  model.Set("conv.weight", Floats(9));
  Dict ema(/*ordered=*/true);
  ema.Set("conv.weight", Floats(8));
  Dict state;
  Dict buffers;
  buffers.Set("momentum_buffer", Floats(7));
  state.Set(std::int64_t{0}, buffers);
  Dict group;
  group.Set("names", Value::List{"conv.weight"});
  group.Set("params", Value::List{0});
  Dict optimizer;
  optimizer.Set("state", state);
  optimizer.Set("param_groups", Value::List{group});
  Dict checkpoint;
  checkpoint.Set("model", model);
  checkpoint.Set("ema", ema);
  checkpoint.Set("optimizer", optimizer);
  checkpoint.Set("rng", Value::List{Floats(6), Floats(5)});
  const auto plan = PlanShards(checkpoint, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(NamesIn(plan->tensors[0]),
            (std::vector<std::string>{"conv.weight", "ema.conv.weight",
                                      "optimizer.momentum_buffer.conv.weight", "rng.0", "rng.1"}));
  EXPECT_EQ(plan->index.tensor_bytes, 4u * (9 + 8 + 7 + 6 + 5));
}

TEST(ShardPlanTest, NoTwoTensorsHaveOneName) {
  Dict model;
  model.Set("rng.0", Floats(3));
  Dict checkpoint;
  checkpoint.Set("model", model);
  checkpoint.Set("rng", Value::List{Floats(2)});
  const auto plan = PlanShards(checkpoint, 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(NamesIn(plan->tensors[0]), (std::vector<std::string>{"rng.0", "rng.0_"}));
  EXPECT_EQ((*plan->index.tree.Find("rng")->list())[0].tensor()->name, "rng.0_");
}

TEST(ShardPlanTest, ATiedWeightIsInOneShardOnce) {
  const at::Tensor weight = Floats(6);
  Dict model;
  model.Set("embedding", weight);
  model.Set("head", weight);
  model.Set("part", weight.narrow(0, 0, 3));
  const auto plan = PlanShards(model, 2);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->index.shard_of.size(), 2u);
  EXPECT_EQ(plan->index.tree.Find("head")->tensor()->name, "embedding");
}

TEST(ShardPlanTest, ShardsDifferByNoMoreThanTheLargestTensor) {
  Value::List list;
  std::uint64_t total = 0;
  for (std::int64_t i = 0; i < 200; ++i) {
    const std::int64_t count = i * 37 % 101;
    list.emplace_back(Floats(count));
    total += static_cast<std::uint64_t>(count) * 4;
  }
  for (const int shards : {1, 2, 3, 7, 64}) {
    const auto plan = PlanShards(Value(list), shards);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->tensors.size(), static_cast<std::size_t>(shards));
    std::size_t tensors = 0;
    for (const auto& shard : plan->tensors) {
      std::uint64_t bytes = 0;
      for (const NamedTensor& named : shard) bytes += named.tensor.nbytes();
      EXPECT_LE(bytes, total / static_cast<std::uint64_t>(shards) + 100 * 4) << shards;
      tensors += shard.size();
    }
    EXPECT_EQ(tensors, 200u);
    EXPECT_EQ(PlanShards(Value(list), shards)->index.shard_of, plan->index.shard_of);
  }
}

TEST(ShardPlanTest, WhatCannotBeWrittenIsNamed) {
  Dict model;
  model.Set("mask", at::ones({2, 2}).to_sparse());
  Dict checkpoint;
  checkpoint.Set("model", model);
  EXPECT_EQ(PlanShards(checkpoint, 2).status().message(),
            "the tensor model.mask is not dense, or of a dtype that is not written");
  Value deep = 1;
  for (int i = 0; i < 99; ++i) deep = Value(Value::List{deep});
  EXPECT_TRUE(PlanShards(deep, 1).ok());
  EXPECT_EQ(PlanShards(Value(Value::List{deep}), 1).status().message(),
            "lists or dicts are within one another too deeply");
}

}  // namespace
}  // namespace muster::trainer
