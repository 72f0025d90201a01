#include "rendezvous/core/values/quotas.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours(1)};

TEST(TokenBucketTest, SoManyAtOnceAndThenSoManyInASecond) {
  TokenBucket pace(10, 3);
  EXPECT_LE(pace.Next(kStart), kStart);
  EXPECT_LE(pace.Next(kStart), kStart);
  // Three have been done now.
  EXPECT_EQ(pace.Next(kStart), kStart + milliseconds(100));
  EXPECT_EQ(pace.Next(kStart + milliseconds(100)), kStart + milliseconds(200));
}

TEST(TokenBucketTest, WhoKeepsItIsNeverHeldUp) {
  TokenBucket pace(10, 1);
  for (int i = 0; i < 100; ++i) {
    const TimePoint now = kStart + i * milliseconds(100);
    EXPECT_EQ(pace.Next(now), now + milliseconds(100));
  }
}

TEST(TokenBucketTest, ALongRestSavesNoMoreThanOnce) {
  TokenBucket pace(10, 3);
  for (int i = 0; i < 3; ++i) pace.Next(kStart);
  const TimePoint later = kStart + seconds(1000);
  EXPECT_LE(pace.Next(later), later);
  EXPECT_LE(pace.Next(later), later);
  EXPECT_GT(pace.Next(later), later);
}

}  // namespace
}  // namespace muster::rendezvous
