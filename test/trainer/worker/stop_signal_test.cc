#include "trainer/worker/stop_signal.h"

#include <csignal>

#include <gtest/gtest.h>

namespace muster::trainer {
namespace {

TEST(StopSignalTest, TheFirstIsRememberedAndTheSecondKills) {
  RememberStopSignal();
  EXPECT_FALSE(StopAsked());
  std::raise(SIGTERM);
  EXPECT_TRUE(StopAsked());
  EXPECT_EXIT(std::raise(SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace muster::trainer
