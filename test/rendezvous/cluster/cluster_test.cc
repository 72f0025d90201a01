// Goal: whatever fails, in any order, a job continues or ends as it should.
//
// Method: 100 simulated clusters for an hour each (see cluster.h), in batches that run in parallel.
// A batch also fails if a fault, or one of its expected consequences, never happened in it, so that
// no change can make the test vacuous.
//
// A failing run prints its seed. To see it event by event:
//   bazel test --test_env=MUSTER_SIM_SEED=17 --test_env=MUSTER_SIM_TRACE=1 --test_output=all
//       //test/rendezvous/cluster:cluster_test
#include "test/rendezvous/cluster/cluster.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace muster::rendezvous {
namespace {

using std::chrono::minutes;

constexpr int kSeeds = 100;
constexpr int kBatches = 4;

class ClusterBatch : public testing::TestWithParam<int> {};

TEST_P(ClusterBatch, EveryCheckHoldsAndEverythingHappens) {
  if (std::getenv("MUSTER_SIM_SEED") != nullptr) GTEST_SKIP() << "one seed is asked for";
  Incidents incidents;
  constexpr int kPerBatch = kSeeds / kBatches;
  for (int i = 1; i <= kPerBatch; ++i) {
    const ClusterResult result =
        SimulateCluster({.seed = static_cast<std::uint64_t>(GetParam() * kPerBatch + i)});
    ASSERT_EQ(result.failure, "");
    ASSERT_GE(result.simulated, minutes(60));
    incidents.Add(result.incidents);
  }
  for (std::size_t i = 0; i < kIncidentNames.size(); ++i) {
    if (IsOfSeveralDaemons(static_cast<Incident>(i))) continue;
    EXPECT_GT(incidents.counts()[i], 0) << kIncidentNames[i];
    std::cout << incidents.counts()[i] << " x " << kIncidentNames[i] << "\n";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClusterBatch, testing::Range(0, kBatches));

TEST(ClusterTest, SameSeedGivesTheSameTraceAndAnotherSeedAnother) {
  std::uint64_t previous = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const ClusterResult once = SimulateCluster({.seed = seed, .chaos = minutes(5)});
    const ClusterResult again = SimulateCluster({.seed = seed, .chaos = minutes(5)});
    EXPECT_EQ(once.trace_hash, again.trace_hash) << "seed " << seed;
    EXPECT_EQ(once.tasks, again.tasks) << "seed " << seed;
    EXPECT_NE(once.trace_hash, previous) << "seed " << seed;
    previous = once.trace_hash;
  }
}

// The first seed, or the one that is asked for.
TEST(ClusterTest, OneSeedGoesWell) {
  const char* const seed = std::getenv("MUSTER_SIM_SEED");
  const bool traced = std::getenv("MUSTER_SIM_TRACE") != nullptr;
  const ClusterResult result =
      SimulateCluster({.seed = seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10),
                       .trace = traced ? &std::cout : nullptr});
  EXPECT_EQ(result.failure, "");
}

}  // namespace
}  // namespace muster::rendezvous
