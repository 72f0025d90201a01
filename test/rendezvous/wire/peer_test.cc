#include "rendezvous/net/peer.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

TEST(PeerTest, Ipv4) {
  const Peer peer = ParsePeer("ipv4:10.0.0.7:51234");
  EXPECT_EQ(peer.address, "10.0.0.7");
  EXPECT_EQ(peer.port, 51'234);
}

TEST(PeerTest, Ipv6WithItsBracketsEncodedOrNot) {
  for (const char* text : {"ipv6:%5Bfe80::1%5D:29400", "ipv6:[fe80::1]:29400"}) {
    const Peer peer = ParsePeer(text);
    EXPECT_EQ(peer.address, "fe80::1") << text;
    EXPECT_EQ(peer.port, 29'400) << text;
  }
}

TEST(PeerTest, OthersHaveNoAddress) {
  EXPECT_EQ(ParsePeer("unix:").address, "");
  EXPECT_EQ(ParsePeer("").address, "");
}

}  // namespace
}  // namespace muster::rendezvous
