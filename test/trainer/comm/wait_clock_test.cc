#include "trainer/worker/timing.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Until the clock has advanced.
void Pass() {
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < milliseconds(1)) {
  }
}

// Without a listener the training pays nothing.
TEST(WaitClockTest, UntilSomebodyWantsToKnowNothingIsCounted) {
  const nanoseconds before = WaitedByThread();
  {
    const WaitScope waits;
    Pass();
    CountWaits();
  }
  EXPECT_EQ(WaitedByThread(), before) << "it had begun before";
}

TEST(WaitClockTest, WhatIsWaitedForWithinAWaitCountsOnce) {
  CountWaits();
  const nanoseconds before = WaitedByThread();
  const auto began = std::chrono::steady_clock::now();
  {
    const WaitScope outer;
    {
      const WaitScope inner;
      Pass();
    }
    EXPECT_EQ(WaitedByThread(), before) << "it has not ended";
  }
  const nanoseconds waited = WaitedByThread() - before;
  EXPECT_GE(waited, milliseconds(1));
  EXPECT_LE(waited, std::chrono::steady_clock::now() - began);
  Pass();
  EXPECT_EQ(WaitedByThread() - before, waited);
}

// A thread averages gradients while this one computes more of them.
TEST(WaitClockTest, AnotherThreadsWaitingIsItsOwn) {
  CountWaits();
  const nanoseconds before = WaitedByThread();
  std::thread other([] {
    {
      const WaitScope waits;
      Pass();
    }
    EXPECT_GE(WaitedByThread(), milliseconds(1));
  });
  other.join();
  EXPECT_EQ(WaitedByThread(), before);
}

}  // namespace
}  // namespace muster::trainer
