#include "trainer/optim/optimizer.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(NamesValueTest, ComeBackInTheirOrder) {
  const std::vector<std::string> names = {"2.bias", "2.weight", ""};
  const auto back = ReadNames(NamesValue(names));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, names);
  EXPECT_TRUE(ReadNames(NamesValue({}))->empty());
}

TEST(NamesValueTest, WhatIsNoListOfNamesIsRefused) {
  for (const Value& value : {Value(), Value("2.bias"), Value(Value::List{"2.bias", 7})}) {
    EXPECT_EQ(ReadNames(value).status().message(),
              "its list of names holds something other than names");
  }
}

}  // namespace
}  // namespace muster::trainer
