#include "rendezvous/net/endpoint.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

// --rdzv-endpoint=0.0.0.0:29400 was retried for a minute, and refused each time.
TEST(ReachableTest, NobodyConnectsToAddressesOfNoMachine) {
  for (const char* host : {"0.0.0.0", "0", "::", "::ffff:0.0.0.0"}) {
    EXPECT_EQ(WhyNobodyConnects(host), "is the wildcard address, which cannot be connected to")
        << host;
  }
  for (const char* host : {"255.255.255.255", "224.0.0.1", "239.255.255.250", "ff02::1"}) {
    EXPECT_EQ(WhyNobodyConnects(host),
              "is a multicast or broadcast address, which cannot be connected to")
        << host;
  }
  for (const char* host :
       {"", "node0", "localhost", "127.0.0.1", "10.0.0.1", "::1", "fe80::1", "::ffff:10.0.0.1"}) {
    EXPECT_EQ(WhyNobodyConnects(host), "") << host;
  }
}

}  // namespace
}  // namespace muster::rendezvous
