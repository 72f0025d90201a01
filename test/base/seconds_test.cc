#include "base/durations.h"

#include <chrono>
#include <optional>

#include <gtest/gtest.h>

namespace muster::base {
namespace {

using std::chrono::milliseconds;

TEST(SecondsTest, WholeAndBrokenSeconds) {
  EXPECT_EQ(ParseSeconds("30"), milliseconds(30'000));
  EXPECT_EQ(ParseSeconds("0.5"), milliseconds(500));
  EXPECT_EQ(ParseSeconds("0"), milliseconds(0));
}

TEST(SecondsTest, WhatIsNoDurationIsNone) {
  for (const char* text : {"", "x", "-1", "1s", "inf", "nan", "1e12"}) {
    EXPECT_EQ(ParseSeconds(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster::base
