#include "base/durations.h"

#include <optional>

#include <gtest/gtest.h>

namespace muster::base {
namespace {

TEST(EarliestTest, EarlierOfTwoOrTheOnlyOne) {
  const std::optional<int> none;
  EXPECT_EQ(Earliest<int>(1, 2), 1);
  EXPECT_EQ(Earliest<int>(2, 1), 1);
  EXPECT_EQ(Earliest<int>(none, 2), 2);
  EXPECT_EQ(Earliest<int>(1, none), 1);
  EXPECT_EQ(Earliest<int>(none, none), none);
}

}  // namespace
}  // namespace muster::base
