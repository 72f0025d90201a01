#include "trainer/models/tensor_layers.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace muster::trainer {
namespace {

at::Tensor Rows(std::int64_t rows, std::int64_t columns) {
  return at::arange(rows * columns).view({rows, columns});
}

TEST(TensorSplitTest, PartsAreWhatTheyAreByHand) {
  const at::Tensor whole = Rows(4, 2);
  EXPECT_TRUE(CutOf(whole, TensorSplit::kWhole, 1, 2).equal(whole));
  EXPECT_TRUE(CutOf(whole, TensorSplit::kRows, 1, 2).equal(at::tensor({4, 5, 6, 7}).view({2, 2})));
  EXPECT_TRUE(
      CutOf(whole, TensorSplit::kColumns, 1, 2).equal(at::tensor({1, 3, 5, 7}).view({4, 1})));
}

// "Rank 0 had all queries, and rank 1 half of the keys."
TEST(TensorSplitTest, QueriesKeysAndValuesAreCutEach) {
  const at::Tensor whole = at::arange(12);  // Q: 0 to 3, K: 4 to 7, V: 8 to 11
  EXPECT_TRUE(CutOf(whole, TensorSplit::kRowsOfThree, 0, 2).equal(at::tensor({0, 1, 4, 5, 8, 9})));
  EXPECT_TRUE(CutOf(whole, TensorSplit::kRowsOfThree, 3, 4).equal(at::tensor({3, 7, 11})));
}

TEST(TensorSplitTest, VocabularyIsFilledUpWithZeros) {
  const at::Tensor whole = Rows(5, 1) + 1;
  EXPECT_TRUE(
      CutOf(whole, TensorSplit::kVocabulary, 0, 2).equal(at::tensor({1, 2, 3}).view({3, 1})));
  EXPECT_TRUE(
      CutOf(whole, TensorSplit::kVocabulary, 1, 2).equal(at::tensor({4, 5, 0}).view({3, 1})));
  // Two for each: the fourth has none.
  EXPECT_TRUE(CutOf(whole, TensorSplit::kVocabulary, 2, 4).equal(at::tensor({5, 0}).view({2, 1})));
  EXPECT_TRUE(CutOf(whole, TensorSplit::kVocabulary, 3, 4).equal(at::tensor({0, 0}).view({2, 1})));
}

TEST(TensorSplitTest, JoinIsTheOpposite) {
  for (const TensorSplit split : {TensorSplit::kWhole, TensorSplit::kRows, TensorSplit::kColumns,
                                  TensorSplit::kRowsOfThree, TensorSplit::kVocabulary}) {
    for (const int parts : {1, 2, 3, 4, 12}) {
      std::vector<at::Tensor> wholes = {Rows(36, 24)};
      if (split != TensorSplit::kColumns) wholes.push_back(at::arange(36));
      if (split == TensorSplit::kVocabulary) wholes.push_back(Rows(50, 2));
      for (const at::Tensor& whole : wholes) {
        std::vector<at::Tensor> cut;
        for (int part = 0; part < parts; ++part) cut.push_back(CutOf(whole, split, part, parts));
        const at::Tensor joined = Join(cut, split, whole.size(0));
        EXPECT_TRUE(joined.equal(whole)) << static_cast<int>(split) << " in " << parts;
        for (const at::Tensor& part : cut) {
          EXPECT_TRUE(part.sizes() == cut[0].sizes() && part.is_contiguous());
        }
      }
    }
  }
}

TEST(TensorSplitTest, PartsHaveMemoryOfTheirOwn) {
  for (const TensorSplit split : {TensorSplit::kWhole, TensorSplit::kRows, TensorSplit::kColumns,
                                  TensorSplit::kRowsOfThree, TensorSplit::kVocabulary}) {
    const at::Tensor whole = Rows(6, 2);
    const at::Tensor part = CutOf(whole, split, 0, 1);
    part.zero_();
    EXPECT_TRUE(whole.equal(Rows(6, 2))) << static_cast<int>(split);
    Join({whole}, split, 6).zero_();
    EXPECT_TRUE(whole.equal(Rows(6, 2))) << static_cast<int>(split);
  }
}

TEST(TensorSplitTest, WhatCannotBeSharedEquallyIsRefused) {
  EXPECT_THROW(CutOf(Rows(4, 6), TensorSplit::kRows, 0, 3), std::invalid_argument);
  EXPECT_THROW(CutOf(Rows(6, 4), TensorSplit::kColumns, 0, 3), std::invalid_argument);
  EXPECT_THROW(CutOf(Rows(6, 4), TensorSplit::kRowsOfThree, 0, 3), std::invalid_argument);
}

}  // namespace
}  // namespace muster::trainer
