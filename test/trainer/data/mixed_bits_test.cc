#include "trainer/data/samples/sample_order.h"

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(MixedBitsTest, SeedEpochAndIndexEachMatter) {
  EXPECT_NE(MixedBits(1, 2, 3), MixedBits(2, 2, 3));
  EXPECT_NE(MixedBits(1, 2, 3), MixedBits(1, 3, 3));
  EXPECT_NE(MixedBits(1, 2, 3), MixedBits(1, 2, 4));
  EXPECT_NE(MixedBits(1, 2, 3), MixedBits(1, 3, 2));
}

// Everything derived from it must stay the same for runs resumed by a newer program.
TEST(MixedBitsTest, IsSplitMix64) {
  // The first number of Java's SplittableRandom(0).
  EXPECT_EQ(MixedBits(0), 0xe220a8397b1dcdaf);
}

}  // namespace
}  // namespace muster::trainer
