#include "worker/output/stream_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace muster::worker {
namespace {

using std::chrono::milliseconds;

class TimeIndexTest : public ::testing::Test {
 protected:
  static TimeIndex::Time At(int ms) { return TimeIndex::Time(milliseconds(1'000'000 + ms)); }

  TimeIndex index_;
};

TEST_F(TimeIndexTest, WhatCameSinceIsFoundAndRatherMore) {
  index_.Add(At(0), 0);
  index_.Add(At(50), 10);  // too close to the first for a point of its own
  index_.Add(At(200), 20);
  index_.Add(At(5000), 30);
  EXPECT_EQ(index_.Find(At(-10), 40), 0u);
  EXPECT_EQ(index_.Find(At(50), 40), 0u);
  EXPECT_EQ(index_.Find(At(100), 40), 20u);
  EXPECT_EQ(index_.Find(At(250), 40), 20u);
  EXPECT_EQ(index_.Find(At(300), 40), 30u) << "in the pause nothing came";
  EXPECT_EQ(index_.Find(At(6000), 40), 40u) << "nor since";
}

TEST_F(TimeIndexTest, NothingIsFoundInAnEmptyOne) {
  EXPECT_EQ(index_.Find(At(0), 0), 0u);
}

// A rank that prints all day must not use more and more memory for it.
TEST_F(TimeIndexTest, LongLifeHasAsManyPointsAndAProportionatePrecision) {
  const int day = 24 * 3600 * 1000;
  for (int ms = 0; ms < day; ms += 100) index_.Add(At(ms), static_cast<std::uint64_t>(ms));
  EXPECT_LE(index_.size(), TimeIndex::kMost);
  EXPECT_LE(index_.interval(), milliseconds(day / 500));
  for (int ms = 0; ms < day; ms += 1'234'567) {
    const std::uint64_t found = index_.Find(At(ms), day);
    EXPECT_LE(found, static_cast<std::uint64_t>(ms) + 100) << "something is left out";
    EXPECT_GE(found + index_.interval().count(), static_cast<std::uint64_t>(ms));
  }
}

// Thinning must not merge two bursts an hour apart.
TEST_F(TimeIndexTest, PauseStaysAPauseHoweverMuchComesLater) {
  index_.Add(At(0), 0);
  const int hour = 3600 * 1000;
  for (int i = 0; i < 10'000; ++i) {
    index_.Add(At(hour + 100 * i), static_cast<std::uint64_t>(1 + i));
  }
  EXPECT_EQ(index_.Find(At(hour / 2), 20'000), 1u);
}

}  // namespace
}  // namespace muster::worker
