// Goal: whatever fails while 10,000 hosts are started, none is started twice, none is left behind,
// and reports on each are true.
//
// Method: seeds of the simulation (simulation.h), in batches that run in parallel. A batch also
// fails if a kind of event that the simulation should cause never occurred in it.
// simulation_mutants_test checks that mistakes in FanOut are detected.
//
// A failing run prints its seed. To see it step by step:
//   bazel test --test_env=MUSTER_SIM_SEED=17 --test_env=MUSTER_SIM_TRACE=1 --test_output=all
//       //test/launcher/remote/simulation:simulation_test
#include "test/launcher/remote/simulation/simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace muster::launcher {
namespace {

constexpr int kPerBatch = 6;

class SimulationBatch : public testing::TestWithParam<int> {};

TEST_P(SimulationBatch, NoHostIsStartedTwiceAndNoneIsLeftBehind) {
  if (std::getenv("MUSTER_SIM_SEED") != nullptr) GTEST_SKIP() << "one seed is asked for";
  std::map<std::string, std::int64_t> happenings;
  for (int i = 1; i <= kPerBatch; ++i) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * kPerBatch + i);
    const SimulationResult result = Simulate({.seed = seed});
    ASSERT_EQ(result.failure, "");
    ASSERT_GE(result.events, 20'000);
    for (const auto& [what, count] : result.happenings) happenings[what] += count;
    std::cout << "seed " << seed << ": " << result.events << " events, " << result.depth
              << " deep\n";
  }
  for (const char* what :
       {"an attempt is never answered", "an attempt is refused", "an attempt is slow",
        "a host dies while it starts", "a host is still busy",
        "a host starts for somebody who is gone", "a process is killed", "a link breaks",
        "the root is told that a host is unreachable", "the root is told that a host is lost"}) {
    EXPECT_GT(happenings[what], 0) << what;
    std::cout << happenings[what] << " x " << what << "\n";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimulationBatch, testing::Range(0, 4));

TEST(SimulationTest, SameSeedGivesTheSameTraceAndAnotherSeedAnother) {
  std::uint64_t previous = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const SimulationResult once = Simulate({.seed = seed, .hosts = 500});
    const SimulationResult again = Simulate({.seed = seed, .hosts = 500});
    EXPECT_EQ(once.trace_hash, again.trace_hash) << "seed " << seed;
    EXPECT_NE(once.trace_hash, previous) << "seed " << seed;
    previous = once.trace_hash;
  }
}

// The first seed, or the requested one.
TEST(SimulationTest, OneSeedGoesWell) {
  const char* const seed = std::getenv("MUSTER_SIM_SEED");
  const bool traced = std::getenv("MUSTER_SIM_TRACE") != nullptr;
  const SimulationResult result =
      Simulate({.seed = seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10),
                .trace = traced ? &std::cout : nullptr});
  EXPECT_EQ(result.failure, "");
}

}  // namespace
}  // namespace muster::launcher
