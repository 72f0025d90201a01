#include "trainer/data/samples/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::trainer {
namespace {

TEST(HoldoutTest, AsManyAsAskedButNeverAllOrNone) {
  const auto count = [](std::int64_t size, double share) {
    const std::vector<bool> held_out = HoldOut(size, share, /*seed=*/1);
    EXPECT_EQ(held_out.size(), static_cast<std::size_t>(size));
    return std::count(held_out.begin(), held_out.end(), true);
  };
  EXPECT_EQ(count(1000, .1), 100);
  EXPECT_EQ(count(5, .1), 1);
  EXPECT_EQ(count(2, 0), 1);
  EXPECT_EQ(count(3, 1), 2);
}

TEST(HoldoutTest, TheSeedChoosesWhich) {
  EXPECT_EQ(HoldOut(100, .2, 7), HoldOut(100, .2, 7));
  EXPECT_NE(HoldOut(100, .2, 7), HoldOut(100, .2, 8));
  // Not a contiguous range at one end.
  const std::vector<bool> held_out = HoldOut(1000, .5, 7);
  const auto half = std::count(held_out.begin(), held_out.begin() + 500, true);
  EXPECT_GT(half, 200);
  EXPECT_LT(half, 300);
}

}  // namespace
}  // namespace muster::trainer
