#include "base/text.h"

#include <csignal>
#include <optional>

#include <gtest/gtest.h>

namespace muster::base {
namespace {

TEST(SignalNamesTest, SignalsHaveTheNamesOfSignalH) {
  EXPECT_EQ(SignalName(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(SignalName(SIGKILL), "SIGKILL");
  EXPECT_EQ(SignalName(SIGUSR1), "SIGUSR1");
  EXPECT_EQ(SignalName(SIGRTMIN), "SIGRTMIN");
  EXPECT_EQ(SignalName(SIGRTMIN + 3), "SIGRTMIN+3");
  EXPECT_EQ(SignalName(99), "signal 99");
}

TEST(SignalNamesTest, NamesAreReadWithAndWithoutSig) {
  EXPECT_EQ(ParseSignal("SIGTERM"), SIGTERM);
  EXPECT_EQ(ParseSignal("USR1"), SIGUSR1);
  EXPECT_EQ(ParseSignal("SIGNIX"), std::nullopt);
  EXPECT_EQ(ParseSignal(""), std::nullopt);
  EXPECT_EQ(ParseSignal("15"), std::nullopt);
}

}  // namespace
}  // namespace muster::base
