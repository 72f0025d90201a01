// The model of a fleet: that it goes through what it is to time, and that its costs are counted.
#include <chrono>

#include <gtest/gtest.h>

#include "test/bench/rendezvous/fleet_model.h"

namespace muster::rendezvous::bench {
namespace {

using std::chrono::milliseconds;

TEST(FleetModelTest, EveryAgentStartsTwice) {
  for (const int rack : {0, 1, 7, 100}) {
    const FleetFigures figures = Simulate({.agents = 100, .rack = rack});
    EXPECT_EQ(figures.started, 100) << rack;
    EXPECT_EQ(figures.started_again, 100) << rack;
  }
}

TEST(FleetModelTest, DaemonShakesHandsWithEachAgentOrEachAggregator) {
  const FleetModel direct{.agents = 1000, .handshake = milliseconds(10)};
  EXPECT_GT(Simulate(direct).gathering, milliseconds(9990));
  FleetModel racks = direct;
  racks.rack = 100;
  // Each aggregator its hundred, at the same time.
  EXPECT_GT(Simulate(racks).gathering, milliseconds(990));
  EXPECT_LT(Simulate(racks).gathering, milliseconds(1990));
}

TEST(FleetModelTest, BeatsOfARackAreOneMessage) {
  const FleetModel direct{.agents = 1000, .message = milliseconds(1)};
  EXPECT_GT(Simulate(direct).peace_share, 1.99);
  FleetModel racks = direct;
  racks.rack = 100;
  EXPECT_LT(Simulate(racks).peace_share, 0.1);
  EXPECT_GT(Simulate(racks).aggregator_peace_share, 0.19);
}

}  // namespace
}  // namespace muster::rendezvous::bench
