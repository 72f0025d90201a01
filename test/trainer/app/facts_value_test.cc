#include "trainer/app/training/snapshot.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

const DataFacts kFacts = {.normalization = {{0.1, -2e9}, {1.0 / 3, 4e-7}},
                          .columns = {"größe", "a,b"},
                          .classes = {"2", "10"}};

TEST(FactsValueTest, WhatIsSetIsReadToTheLastDigit) {
  Dict checkpoint;
  SetFacts(kFacts, checkpoint);
  const auto read = ReadFacts(checkpoint);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, kFacts);
  EXPECT_EQ(UnpackFacts(PackFacts(kFacts)), kFacts);
}

TEST(FactsValueTest, OlderCheckpointsSayNothing) {
  EXPECT_EQ(*ReadFacts(Dict()), DataFacts());
  Dict checkpoint;
  SetFacts(DataFacts(), checkpoint);
  EXPECT_EQ(checkpoint.size(), 0u);
}

// A checkpoint edited by a script caused a division by 0.
TEST(FactsValueTest, WhatCannotBeUsedIsRefused) {
  const auto refusal = [](const DataFacts& facts) {
    Dict checkpoint;
    SetFacts(facts, checkpoint);
    return std::string(ReadFacts(checkpoint).status().message());
  };
  const std::string damaged =
      "'normalization' is damaged: it needs a finite mean and a deviation above 0 for each channel "
      "or column";
  EXPECT_EQ(refusal({.normalization = {{1}, {0}}}), damaged);
  EXPECT_EQ(refusal({.normalization = {{1, 2}, {1}}}), damaged);
  EXPECT_EQ(refusal({.normalization = {{1}, {1}}, .columns = {"a", "b"}}), damaged);
  Dict normalization;
  normalization.Set("mean", "high");
  Dict checkpoint;
  checkpoint.Set("normalization", normalization);
  EXPECT_EQ(refusal({.classes = {"a", "b", "a"}}), "'classes' has the same name twice");
  EXPECT_EQ(ReadFacts(checkpoint).status().message(), "'mean' is not a list of numbers");
}

}  // namespace
}  // namespace muster::trainer
