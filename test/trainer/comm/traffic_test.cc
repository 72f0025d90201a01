#include "trainer/comm/host/operation_log.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(TrafficTest, Formulas) {
  EXPECT_EQ(CentralBytes(1, 1000), 0);
  EXPECT_EQ(CentralBytes(4, 1000), 6000);
  EXPECT_EQ(RingBytes(1, 1000), 0);
  EXPECT_EQ(RingBytes(2, 1000), 1000);
  EXPECT_EQ(RingBytes(4, 1000), 1500);
  EXPECT_EQ(GatherBytes(1, 1000), 0);
  EXPECT_EQ(GatherBytes(4, 1000), 3000);
  EXPECT_EQ(Traffic().PerStep(10), 0);
  EXPECT_EQ(Traffic{.steps = 4}.PerStep(10), 2.5);
}

// Three ranks share ten bytes thirty times: twenty each, not thirty times six.
TEST(TrafficTest, SumsOfFormulasAreNotRoundedOneByOne) {
  TrafficCount count(3);
  for (int i = 0; i < 30; ++i) {
    count.Add(Use::kGradients, Operation::kReduceScatter, 10, std::nullopt);
  }
  EXPECT_EQ(count.Total(Use::kGradients, false).formula_bytes, 200);
}

TEST(TrafficTest, EachUseHasItsOwnTotal) {
  TrafficCount count(2);
  count.Add(Use::kGradients, Operation::kAllReduce, 100, 90);
  count.Add(Use::kGradients, Operation::kSend, 10, 10);
  count.Add(Use::kGradients, Operation::kReceive, 10, 0);
  count.Add(Use::kParameters, Operation::kAllGather, 100, std::nullopt);
  EXPECT_EQ(count.Total(Use::kGradients, true).formula_bytes, 110);
  EXPECT_EQ(count.Total(Use::kGradients, true).counted_bytes, 100);
  EXPECT_EQ(count.Total(Use::kParameters, true).formula_bytes, 100);
  EXPECT_EQ(count.Total(Use::kOther, true).formula_bytes, 0);
}

TEST(TrafficTest, WhatIsCountedInPartIsNotCounted) {
  TrafficCount count(2);
  EXPECT_EQ(count.Total(Use::kOther, true).counted_bytes, 0);
  EXPECT_EQ(count.Total(Use::kOther, false).counted_bytes, std::nullopt);
  count.Add(Use::kOther, Operation::kSend, 10, 10);
  EXPECT_EQ(count.Total(Use::kOther, false).counted_bytes, 10);
  count.Add(Use::kOther, Operation::kBroadcast, 10, std::nullopt);
  EXPECT_EQ(count.Total(Use::kOther, true).counted_bytes, std::nullopt);
}

TEST(TrafficTest, SinceIsTheDifference) {
  const Traffic earlier = {.steps = 0, .formula_bytes = 30, .counted_bytes = 20};
  const Traffic now = {.steps = 3, .formula_bytes = 100, .counted_bytes = 80};
  EXPECT_EQ(now.Since(earlier).steps, 3);
  EXPECT_EQ(now.Since(earlier).formula_bytes, 70);
  EXPECT_EQ(now.Since(earlier).counted_bytes, 60);
}

}  // namespace
}  // namespace muster::trainer
