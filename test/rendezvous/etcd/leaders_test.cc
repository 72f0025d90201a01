// Goal: no two daemons lead, and nothing that was acknowledged is lost, whatever fails between them
// and etcd.
//
// Method: seeded worlds (leaders.h). A batch also fails if something never happened in it.
#include "test/rendezvous/etcd/leaders.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

constexpr int kSeeds = 40;
constexpr int kBatches = 2;

class LeadersBatch : public testing::TestWithParam<int> {};

TEST_P(LeadersBatch, OneLeadsAndNothingIsLost) {
  History all;
  constexpr int kPerBatch = kSeeds / kBatches;
  for (int i = 1; i <= kPerBatch; ++i) {
    const LeadersResult result =
        SimulateLeaders({.seed = static_cast<std::uint64_t>(GetParam() * kPerBatch + i)});
    ASSERT_EQ(result.failure, "");
    all.Add(result.history);
  }
  EXPECT_GT(all.take_overs, 15u * kPerBatch);
  EXPECT_GT(all.acknowledgements, 500u * kPerBatch);
  EXPECT_GT(all.words, 500u * kPerBatch);
  EXPECT_GT(all.kept_batches, 0u);
  EXPECT_GT(all.lost_batches, 0u);
  EXPECT_GT(all.large_batches, 0u);
  EXPECT_GT(all.full, 0u);
  // From memory and, where it was not known in time what is there, from etcd.
  EXPECT_GT(all.followed, all.take_overs / 4);
  EXPECT_GT(all.take_overs, all.followed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LeadersBatch, testing::Range(0, kBatches));

// "When a machine's clock was set back nobody took the place of a daemon that had died": up to 3.4
// etcd ends leases by the wall clock.
TEST(LeadersTest, LeaderIsFollowedWhenAClockWasSetBack) {
  std::uint64_t take_overs = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const LeadersResult result = SimulateLeaders({.seed = seed, .clock_is_back = true});
    ASSERT_EQ(result.failure, "");
    take_overs += result.history.take_overs;
  }
  EXPECT_GT(take_overs, 100u);
}

TEST(LeadersTest, SameSeedGivesTheSameHistory) {
  const LeadersResult once = SimulateLeaders({.seed = 7, .chaos = std::chrono::minutes(5)});
  const LeadersResult again = SimulateLeaders({.seed = 7, .chaos = std::chrono::minutes(5)});
  EXPECT_EQ(once.tasks, again.tasks);
  EXPECT_EQ(once.history.acknowledgements, again.history.acknowledgements);
}

}  // namespace
}  // namespace muster::rendezvous
