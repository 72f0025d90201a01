#include "base/text.h"

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::base {
namespace {

using std::chrono::milliseconds;

TEST(PhrasesTest, OneIsSingular) {
  EXPECT_EQ(Count(0, "node"), "0 nodes");
  EXPECT_EQ(Count(1, "node"), "1 node");
  EXPECT_EQ(Count(3, "node"), "3 nodes");
}

TEST(PhrasesTest, DurationsHaveNoMoreDigitsThanMatter) {
  EXPECT_EQ(Seconds(milliseconds(-5)), "0 ms");
  EXPECT_EQ(Seconds(milliseconds(250)), "250 ms");
  EXPECT_EQ(Seconds(milliseconds(1000)), "1 s");
  EXPECT_EQ(Seconds(milliseconds(3240)), "3.2 s");
  EXPECT_EQ(Seconds(milliseconds(12'600)), "13 s");
  EXPECT_EQ(Seconds(std::chrono::minutes(10)), "600 s");
}

TEST(PhrasesTest, WhatTookLongIsToldInTwoUnits) {
  using std::chrono::hours;
  using std::chrono::seconds;
  EXPECT_EQ(Elapsed(milliseconds(3240)), "3.2 s");
  EXPECT_EQ(Elapsed(seconds(119)), "119 s");
  EXPECT_EQ(Elapsed(seconds(120)), "2 min 00 s");
  EXPECT_EQ(Elapsed(seconds(3599)), "59 min 59 s");
  EXPECT_EQ(Elapsed(seconds(7505)), "2 h 05 min");
  EXPECT_EQ(Elapsed(hours(52)), "2 d 04 h");
}

TEST(PhrasesTest, WhatWasMeasuredHasThreeDigits) {
  using Time = std::chrono::duration<double>;
  EXPECT_EQ(Measured(Time(0.01234)), "12.3 ms");
  EXPECT_EQ(Measured(Time(0.9996)), "1 s");
  EXPECT_EQ(Measured(Time(1.206)), "1.21 s");
  EXPECT_EQ(Measured(Time(7505)), "2 h 05 min");
}

TEST(PhrasesTest, AProcessExitsOrIsKilled) {
  EXPECT_EQ(ExitPhrase(0, 0), "exited with code 0");
  EXPECT_EQ(ExitPhrase(3, 0), "exited with code 3");
  EXPECT_EQ(ExitPhrase(0, SIGKILL), "was killed by SIGKILL");
}

TEST(PhrasesTest, LongListsAreCutAfterEight) {
  std::vector<std::string> items = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
  EXPECT_EQ(ShortList({}), "");
  EXPECT_EQ(ShortList({"a"}), "a");
  // Where one more would be left out it is named instead.
  EXPECT_EQ(ShortList(items), "a, b, c, d, e, f, g, h, i");
  items.push_back("j");
  EXPECT_EQ(ShortList(items), "a, b, c, d, e, f, g, h and 2 more");
  EXPECT_EQ(ShortList(items, 100), "a, b, c, d, e, f, g, h and 92 more");
}

}  // namespace
}  // namespace muster::base
