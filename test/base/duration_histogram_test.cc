// Durations counted by how long they were.
#include "base/durations.h"

#include <gtest/gtest.h>

namespace muster::base {
namespace {

using std::chrono::milliseconds;

TEST(DurationHistogramTest, BucketsHaveAllThatIsNotLonger) {
  constexpr std::chrono::nanoseconds kBounds[] = {milliseconds(5), milliseconds(10),
                                                  milliseconds(100)};
  DurationHistogram histogram(kBounds);
  for (const int ms : {0, 5, 6, 100, 101}) histogram.Observe(milliseconds(ms));
  EXPECT_EQ(histogram.UpTo(0), 2u) << "5 ms and less";
  EXPECT_EQ(histogram.UpTo(1), 3u);
  EXPECT_EQ(histogram.UpTo(2), 4u);
  EXPECT_EQ(histogram.UpTo(3), 5u) << "all";
  EXPECT_EQ(histogram.count(), 5u);
  EXPECT_EQ(histogram.sum(), milliseconds(212));
}

TEST(DurationHistogramTest, WithoutBoundsAllAreOne) {
  DurationHistogram histogram({});
  histogram.Observe(milliseconds(3));
  EXPECT_EQ(histogram.UpTo(0), 1u);
}

}  // namespace
}  // namespace muster::base
