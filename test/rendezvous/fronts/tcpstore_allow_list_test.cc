#include "rendezvous/fronts/tcpstore_server.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using boost::asio::ip::make_address;

TEST(TcpStoreAllowListTest, WithoutAListEverybodyMayConnect) {
  EXPECT_TRUE(TcpStoreAllowList().Allows(make_address("192.0.2.1")));
  EXPECT_TRUE(TcpStoreAllowList(std::nullopt).Allows(make_address("2001:db8::1")));
}

TEST(TcpStoreAllowListTest, WithAnEmptyListNobodyMay) {
  EXPECT_FALSE(TcpStoreAllowList(std::vector<std::string>()).Allows(make_address("127.0.0.1")));
}

TEST(TcpStoreAllowListTest, AddressMatchesHoweverItIsWritten) {
  const TcpStoreAllowList list(
      std::vector<std::string>{"192.0.2.1", "::ffff:192.0.2.2", "2001:DB8:0::1", "fe80::1%ib0"});
  for (const char* text : {"192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2", "::ffff:192.0.2.2",
                           "2001:db8::1", "fe80::1", "fe80::1%1", "fe80::1%2"}) {
    EXPECT_TRUE(list.Allows(make_address(text))) << text;
  }
  for (const char* text : {"192.0.2.3", "::ffff:192.0.2.3", "::192.0.2.1", "2001:db8::2", "::1",
                           "127.0.0.1", "0.0.0.0"}) {
    EXPECT_FALSE(list.Allows(make_address(text))) << text;
  }
}

TEST(TcpStoreAllowListTest, WhatIsNoAddressMatchesNobody) {
  const TcpStoreAllowList list(std::vector<std::string>{"", "localhost", "127.0.0.1:80", "1.2.3"});
  EXPECT_FALSE(list.Allows(make_address("127.0.0.1")));
}

}  // namespace
}  // namespace muster::rendezvous
