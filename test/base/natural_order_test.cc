#include "base/text.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::base {
namespace {

using Names = std::vector<std::string>;

bool NaturalLess(const std::string& a, const std::string& b) {
  std::string key_a, key_b;
  AppendNatural(a, &key_a);
  AppendNatural(b, &key_b);
  return key_a < key_b;
}

Names Sorted(Names names) {
  std::sort(names.begin(), names.end(), NaturalLess);
  return names;
}

TEST(NaturalOrderTest, NumbersInNamesCountAsNumbers) {
  EXPECT_EQ(Sorted({"node70", "node8", "node66", "node7"}),
            (Names{"node7", "node8", "node66", "node70"}));
  EXPECT_EQ(Sorted({"10.0.0.10", "10.0.0.9", "9.255.0.1"}),
            (Names{"9.255.0.1", "10.0.0.9", "10.0.0.10"}));
  EXPECT_EQ(Sorted({"rack2-n10", "rack10-n1", "rack2-n9"}),
            (Names{"rack2-n9", "rack2-n10", "rack10-n1"}));
  EXPECT_EQ(Sorted({"n20000000000000000000000001", "n20000000000000000000000000", "n3"}),
            (Names{"n3", "n20000000000000000000000000", "n20000000000000000000000001"}));
}

TEST(NaturalOrderTest, IsAnOrder) {
  const Names words = {"",   "a",   "a0", "a00", "a1", "a01b", "a1b",
                       "a2", "a10", "b",  "1",   "01", "10"};
  for (const std::string& a : words) {
    EXPECT_FALSE(NaturalLess(a, a)) << a;
    for (const std::string& b : words) {
      EXPECT_FALSE(NaturalLess(a, b) && NaturalLess(b, a)) << a << " " << b;
      for (const std::string& c : words) {
        if (NaturalLess(a, b) && NaturalLess(b, c)) {
          EXPECT_TRUE(NaturalLess(a, c)) << a << b << c;
        }
      }
    }
  }
}

}  // namespace
}  // namespace muster::base
