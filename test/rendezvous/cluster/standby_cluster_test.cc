// Goal: jobs go on whatever fails while two or three daemons take turns over an etcd.
//
// Method: simulated clusters (see cluster.h) with several daemons, two with every other seed, in
// batches that run in parallel. A batch also fails if what is about several daemons never happened
// in it.
//
// To see a failing seed event by event:
//   cluster_simulation --daemons=several --minutes=20 --seeds=1 --trace --first-seed=SEED
#include <gtest/gtest.h>

#include <iostream>

#include "test/rendezvous/cluster/cluster.h"

namespace muster::rendezvous {
namespace {

using std::chrono::minutes;

constexpr int kSeeds = 30;
constexpr int kBatches = 2;
constexpr minutes kChaos(20);

ClusterOptions OptionsFor(std::uint64_t seed) {
  return {.seed = seed, .daemons = seed % 2 == 0 ? 2 : 3, .chaos = kChaos};
}

class StandbyBatch : public testing::TestWithParam<int> {};

TEST_P(StandbyBatch, EveryCheckHoldsAndEverythingHappens) {
  Incidents incidents;
  constexpr int kPerBatch = kSeeds / kBatches;
  for (int i = 1; i <= kPerBatch; ++i) {
    const ClusterResult result =
        SimulateCluster(OptionsFor(static_cast<std::uint64_t>(GetParam() * kPerBatch + i)));
    ASSERT_EQ(result.failure, "");
    ASSERT_GE(result.simulated, kChaos);
    incidents.Add(result.incidents);
  }
  for (std::size_t i = 0; i < kIncidentNames.size(); ++i) {
    std::cout << incidents.counts()[i] << " x " << kIncidentNames[i] << "\n";
    const auto what = static_cast<Incident>(i);
    const bool matters = IsOfSeveralDaemons(what) || what == Incident::kBatchKept ||
                         what == Incident::kBatchLost || what == Incident::kResumed ||
                         what == Incident::kLeftInPeace || what == Incident::kStoreAcknowledged;
    if (!matters) continue;
    EXPECT_GT(incidents.counts()[i], 0) << kIncidentNames[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, StandbyBatch, testing::Range(0, kBatches));

TEST(StandbyClusterTest, SameSeedGivesTheSameTrace) {
  ClusterOptions options = OptionsFor(3);
  options.chaos = minutes(5);
  const ClusterResult once = SimulateCluster(options);
  const ClusterResult again = SimulateCluster(options);
  EXPECT_EQ(once.trace_hash, again.trace_hash);
  EXPECT_EQ(once.tasks, again.tasks);
}

}  // namespace
}  // namespace muster::rendezvous
