// Ten thousand agents could not join a daemon with a journal: it wrote the whole job after every
// few of them, and had no time for the rest.
#include "rendezvous/core/durable_outbox.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr TimePoint kNow{std::chrono::hours(1)};

TEST(CommitPaceTest, QuickBatchesFollowOneAnother) {
  CommitPace pace;
  EXPECT_LE(pace.next(), kNow);
  pace.Made(microseconds(300), kNow);
  EXPECT_LE(pace.next(), kNow);
}

TEST(CommitPaceTest, LargeBatchesTakeAFifthOfTheTime) {
  CommitPace pace;
  TimePoint now = kNow;
  for (int batches = 0; batches < 10; ++batches) {
    now = std::max(now, pace.next()) + milliseconds(50);
    pace.Made(milliseconds(50), now);
  }
  EXPECT_EQ(now - kNow, milliseconds(50 + 9 * 250));
}

TEST(CommitPaceTest, NobodyWaitsForMoreThanASecond) {
  CommitPace pace;
  pace.Made(milliseconds(600), kNow);
  EXPECT_EQ(pace.next(), kNow + std::chrono::seconds(1));
}

TEST(CommitPaceTest, LargeBatchIsForgottenAfterAQuickOne) {
  CommitPace pace;
  pace.Made(milliseconds(50), kNow);
  EXPECT_EQ(pace.next(), kNow + milliseconds(200));
  pace.Made(microseconds(300), kNow + milliseconds(200));
  EXPECT_LE(pace.next(), kNow + milliseconds(200));
}

}  // namespace
}  // namespace muster::rendezvous
