#include "trainer/app/training/saving.h"

#include <gtest/gtest.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

namespace muster::trainer {
namespace {

Value Pair(const at::Tensor& first, const at::Tensor& second) {
  Dict dict(/*ordered=*/true);
  dict.Set("first", first);
  dict.Set("step", 7);
  dict.Set("rest", Value::List{second, "text"});
  return dict;
}

at::Tensor First(const Value& value) {
  return *value.Find("first")->tensor();
}

at::Tensor Second(const Value& value) {
  return *(*value.Find("rest")->list())[0].tensor();
}

TEST(TensorCopiesTest, WhatChangesAfterwardsDoesNotChangeTheCopy) {
  TensorCopies copies;
  const at::Tensor weight = at::full({4}, 1.0);
  const Value copy = copies.Copy(Pair(weight, at::ones({2}))).value();
  weight.fill_(2.0);
  EXPECT_TRUE(at::equal(First(copy), at::full({4}, 1.0)));
  EXPECT_EQ(copy.GetInt("step").value(), 7);
  EXPECT_TRUE(copy.dict()->ordered());
}

TEST(TensorCopiesTest, MemoryIsUsedAgainWhereItFits) {
  TensorCopies copies;
  const Value before = copies.Copy(Pair(at::zeros({100}), at::zeros({3}))).value();
  const Value after = copies.Copy(Pair(at::ones({100}), at::ones({4}, at::kDouble))).value();
  EXPECT_EQ(First(after).data_ptr(), First(before).data_ptr());
  EXPECT_TRUE(at::equal(First(after), at::ones({100})));
  EXPECT_TRUE(at::equal(Second(after), at::ones({4}, at::kDouble)));
}

TEST(TensorCopiesTest, ATiedWeightIsCopiedOnceAndAViewIsDense) {
  TensorCopies copies;
  const at::Tensor weight = at::arange(6, at::kFloat).view({2, 3});
  const Value tied = copies.Copy(Pair(weight, weight)).value();
  EXPECT_EQ(First(tied).data_ptr(), Second(tied).data_ptr());
  const Value views = copies.Copy(Pair(weight, weight.t())).value();
  EXPECT_NE(First(views).data_ptr(), Second(views).data_ptr());
  EXPECT_TRUE(Second(views).is_contiguous());
  EXPECT_TRUE(at::equal(Second(views), weight.t()));
}

TEST(TensorCopiesTest, AParameterIsCopiedWithoutItsHistory) {
  TensorCopies copies;
  const at::Tensor weight = at::ones({2}).requires_grad_(true);
  const Value copy = copies.Copy(Pair(weight, at::Tensor())).value();
  EXPECT_FALSE(First(copy).requires_grad());
  EXPECT_FALSE(Second(copy).defined()) << "whoever writes it says so";
}

}  // namespace
}  // namespace muster::trainer
