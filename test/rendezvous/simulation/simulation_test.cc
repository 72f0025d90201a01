// Goal: the Coordinator keeps its promises, whatever arrives in whatever order.
//
// Method: 200 seeds of 100,000 events each (see simulation.h), in batches that run in parallel. A
// batch also fails if anything that the simulation should cause never happened in it, so that no
// change can make the test vacuous.
//
// A failing run prints its seed. To see it event by event:
//   bazel test --test_env=MUSTER_SIM_SEED=17 --test_env=MUSTER_SIM_TRACE=1 --test_output=all
//       //test/rendezvous/simulation:simulation_test
#include "test/rendezvous/simulation/simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace muster::rendezvous {
namespace {

constexpr int kSeeds = 200;
constexpr int kBatches = 8;

class SimulationBatch : public testing::TestWithParam<int> {};

TEST_P(SimulationBatch, EveryInvariantHoldsAndEverythingHappens) {
  if (std::getenv("MUSTER_SIM_SEED") != nullptr) GTEST_SKIP() << "one seed is asked for";
  Coverage coverage;
  constexpr int kPerBatch = kSeeds / kBatches;
  for (int i = 1; i <= kPerBatch; ++i) {
    const std::uint64_t seed = GetParam() * kPerBatch + i;
    const SimulationResult result = Simulate({.seed = seed});
    ASSERT_EQ(result.failure, "");
    ASSERT_GE(result.events, 100'000);
    coverage.Add(result.coverage);
  }
  for (std::size_t i = 0; i < kHappeningNames.size(); ++i) {
    EXPECT_GT(coverage.counts()[i], 0) << kHappeningNames[i];
    std::cout << coverage.counts()[i] << " x " << kHappeningNames[i] << "\n";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimulationBatch, testing::Range(0, kBatches));

TEST(SimulationTest, SameSeedGivesTheSameTraceAndAnotherSeedAnother) {
  std::uint64_t previous = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const SimulationResult once = Simulate({.seed = seed, .events = 20'000});
    const SimulationResult again = Simulate({.seed = seed, .events = 20'000});
    EXPECT_EQ(once.trace_hash, again.trace_hash) << "seed " << seed;
    EXPECT_EQ(once.events, again.events) << "seed " << seed;
    EXPECT_NE(once.trace_hash, previous) << "seed " << seed;
    previous = once.trace_hash;
  }
}

// The first seed, or the one that is asked for.
TEST(SimulationTest, OneSeedGoesWell) {
  const char* const seed = std::getenv("MUSTER_SIM_SEED");
  const bool traced = std::getenv("MUSTER_SIM_TRACE") != nullptr;
  const SimulationResult result =
      Simulate({.seed = seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10),
                .trace = traced ? &std::cout : nullptr});
  EXPECT_EQ(result.failure, "");
}

}  // namespace
}  // namespace muster::rendezvous
