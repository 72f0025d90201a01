#include "rendezvous/net/peer.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using boost::asio::ip::make_address;
using boost::asio::ip::make_address_v6;
using boost::asio::ip::tcp;

TEST(HostAddressTest, OneFormHoweverItIsWritten) {
  for (const char* text : {"127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1"}) {
    EXPECT_EQ(ParseHostAddress(text), make_address("127.0.0.1")) << text;
  }
  EXPECT_EQ(ParseHostAddress("FE80:0::1"), make_address("fe80::1"));
}

TEST(HostAddressTest, TheZoneIsLeftOutAlsoIfItIsNotOfThisMachine) {
  EXPECT_EQ(ParseHostAddress("fe80::1%lo"), make_address("fe80::1"));
  EXPECT_EQ(ParseHostAddress("fe80::1%of-another-host"), make_address("fe80::1"));
  boost::asio::ip::address_v6 with_zone = make_address_v6("fe80::1");
  with_zone.scope_id(7);
  EXPECT_EQ(HostAddress(with_zone), make_address("fe80::1"));
}

TEST(HostAddressTest, AnIpv6HostHasAWhole64) {
  EXPECT_EQ(HostLine(make_address("10.0.0.1")), make_address("10.0.0.1"));
  EXPECT_EQ(HostLine(make_address("2001:db8:0:1::77")), make_address("2001:db8:0:1::"));
}

TEST(HostAddressTest, WhatIsNoNumericAddressIsNone) {
  for (const char* text : {"", "localhost", "127.0.0.1:80", "1.2.3", "%lo"}) {
    EXPECT_EQ(ParseHostAddress(text), std::nullopt) << text;
  }
  EXPECT_EQ(HostEndpoint(Peer{.address = "unix", .port = 1}), std::nullopt);
}

TEST(HostAddressTest, APeerIsTheSameAsGrpcAndAsTheKernelHasIt) {
  const tcp::endpoint kernel(make_address("::ffff:10.0.0.1"), 29400);
  EXPECT_EQ(HostEndpoint(kernel), tcp::endpoint(make_address("10.0.0.1"), 29400));
  EXPECT_EQ(HostEndpoint(Peer{.address = "10.0.0.1", .port = 29400}), HostEndpoint(kernel));
}

}  // namespace
}  // namespace muster::rendezvous
