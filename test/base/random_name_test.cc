#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace muster::base {
namespace {

TEST(RandomNameTest, NamesAreLowerCaseLettersAndDigits) {
  std::set<char> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string name = RandomName(32);
    ASSERT_EQ(name.size(), 32U);
    EXPECT_TRUE(std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return std::isdigit(c) != 0 || std::islower(c) != 0;
    })) << name;
    seen.insert(name.begin(), name.end());
  }
  EXPECT_EQ(seen.size(), 36U);
  EXPECT_EQ(RandomName(0), "");
}

TEST(RandomNameTest, NoTwoAreAlike) {
  std::set<std::string> names;
  for (int i = 0; i < 1000; ++i) names.insert(RandomName(12));
  EXPECT_EQ(names.size(), 1000U);
}

}  // namespace
}  // namespace muster::base
