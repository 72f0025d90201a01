#include "launcher/machine/network.h"

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

// Gloo on the second node said "connect [127.0.0.1]:5556: Connection refused".
TEST(GlooInterfaceTest, HostWhoseNameLeadsToLoopbackUsesTheInterfaceThatOthersReachItBy) {
  if (InterfaceAddresses().empty()) GTEST_SKIP() << "this machine has nothing but loopback";
  const std::string address = InterfaceAddresses().front();
  const std::string interface = InterfaceWith(address);
  EXPECT_NE(interface, "");
  for (const char* own_name : {"localhost", "127.0.1.1", "no-such-host.invalid"}) {
    EXPECT_EQ(InterfaceForGloo(own_name, address), interface) << own_name;
  }
  EXPECT_EQ(InterfaceForGloo(address, address), std::nullopt) << "Gloo finds it by itself";
}

TEST(GlooInterfaceTest, JobOnOneMachineNeedsNone) {
  EXPECT_EQ(InterfaceForGloo("localhost", "127.0.0.1"), std::nullopt);
  EXPECT_EQ(InterfaceForGloo("localhost", "::1"), std::nullopt);
}

TEST(GlooInterfaceTest, AddressThatNoInterfaceHasIsSaidToBeUnknown) {
  EXPECT_EQ(InterfaceForGloo("localhost", "no-such-host.invalid"), "");
}

TEST(GlooInterfaceTest, LoopbackHasAnInterfaceToo) {
  EXPECT_EQ(InterfaceWith("127.0.0.1"), "lo");
  EXPECT_EQ(InterfaceWith("192.0.2.1"), "");
  EXPECT_FALSE(ResolvesToInterface("localhost"));
  EXPECT_FALSE(ResolvesToInterface("192.0.2.1"));
}

}  // namespace
}  // namespace muster::launcher
