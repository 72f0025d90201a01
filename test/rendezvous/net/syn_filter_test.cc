// The kernel blocks some hosts from a listening socket, and no others.
#include "rendezvous/net/flood_guard.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <gtest/gtest.h>

#include "rendezvous/net/peer.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::address;
using boost::asio::ip::make_address;
using boost::asio::ip::tcp;

// Linux 6.18 only lets the administrator of a network namespace block TCP packets from a socket: so
// this process gets its own namespace. False: that is not permitted.
bool HaveOwnNetwork() {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq loopback = {};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP;
  const bool up = ::ioctl(fd, SIOCSIFFLAGS, &loopback) == 0;
  ::close(fd);
  return up;
}

class SynFilterTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { has_network_ = HaveOwnNetwork(); }
  void SetUp() override {
    if (!has_network_) GTEST_SKIP() << "namespaces are not to be had here";
    // At all addresses, including IPv4, as musterd listens.
    listener_.open(tcp::v6());
    listener_.set_option(boost::asio::ip::v6_only(false));
    listener_.bind({tcp::v6(), 0});
    listener_.listen();
  }

  testing::AssertionResult Bar(const std::vector<address>& hosts) {
    if (DropSynsFrom(hosts, {listener_.native_handle()})) return testing::AssertionSuccess();
    return testing::AssertionFailure() << std::strerror(errno);
  }

  // Whether a client from there connects. A blocked one is still retrying when a later client, from
  // an address that is never blocked, has connected.
  bool ComesIn(const std::string& from, const std::string& to) {
    tcp::socket client = Connecting(from, to);
    tcp::socket after = Connecting("127.0.0.9", "127.0.0.9");
    for (;;) {
      tcp::endpoint peer;
      last_ = listener_.accept(peer);
      if (peer.port() == after.local_endpoint().port()) return false;
      if (peer.port() == client.local_endpoint().port()) {
        last_client_ = std::move(client);
        return true;
      }
    }
  }

  tcp::socket Connecting(const std::string& from, const std::string& to) {
    tcp::socket client(io_);
    const address local = make_address(from);
    client.open(local.is_v4() ? tcp::v4() : tcp::v6());
    client.bind({local, 0});
    client.native_non_blocking(true);
    const tcp::endpoint target(make_address(to), listener_.local_endpoint().port());
    EXPECT_TRUE(::connect(client.native_handle(), target.data(), target.size()) == 0 ||
                errno == EINPROGRESS);
    return client;
  }

  inline static bool has_network_ = false;

  boost::asio::io_context io_;
  tcp::acceptor listener_{io_};
  tcp::socket last_{io_};  // the listener's end, and the client's
  tcp::socket last_client_{io_};
};

TEST_F(SynFilterTest, OneHostIsKeptAway) {
  ASSERT_TRUE(Bar({make_address("127.0.0.2")}));
  EXPECT_FALSE(ComesIn("127.0.0.2", "127.0.0.1"));
  EXPECT_TRUE(ComesIn("127.0.0.3", "127.0.0.1"));
  EXPECT_TRUE(ComesIn("127.0.0.1", "127.0.0.1"));
  EXPECT_TRUE(ComesIn("::1", "::1"));
}

TEST_F(SynFilterTest, SeveralAreOfBothKinds) {
  std::vector<address> hosts;
  for (int i = 10; i < 70; ++i) hosts.push_back(make_address("127.0.0." + std::to_string(i)));
  hosts.push_back(HostLine(make_address("2001:db8::1")));
  hosts.push_back(HostLine(make_address("::1")));
  ASSERT_TRUE(Bar(hosts));
  EXPECT_FALSE(ComesIn("127.0.0.10", "127.0.0.1"));
  EXPECT_FALSE(ComesIn("127.0.0.69", "127.0.0.1"));
  EXPECT_TRUE(ComesIn("127.0.0.70", "127.0.0.1"));
  EXPECT_FALSE(ComesIn("::1", "::1"));
}

TEST_F(SynFilterTest, AnotherHalfOfAnIPv6AddressIsAnotherHost) {
  ASSERT_TRUE(Bar({HostLine(make_address("0:0:0:1::1")), HostLine(make_address("0:1::1"))}));
  EXPECT_TRUE(ComesIn("::1", "::1"));
}

TEST_F(SynFilterTest, NobodyIsKeptAwayAnyMore) {
  ASSERT_TRUE(Bar({make_address("127.0.0.2")}));
  ASSERT_TRUE(Bar({make_address("127.0.0.3")}));
  EXPECT_TRUE(ComesIn("127.0.0.2", "127.0.0.1"));
  EXPECT_FALSE(ComesIn("127.0.0.3", "127.0.0.1"));
  ASSERT_TRUE(Bar({}));
  EXPECT_TRUE(ComesIn("127.0.0.3", "127.0.0.1"));
  EXPECT_TRUE(Bar({})) << "nor were they before";
}

TEST_F(SynFilterTest, ConnectionsThatAreThereGoOn) {
  ASSERT_TRUE(ComesIn("127.0.0.2", "127.0.0.1"));
  ASSERT_TRUE(Bar({make_address("127.0.0.2")}));
  boost::asio::write(last_client_, boost::asio::buffer("before", 6));
  char text[6];
  EXPECT_EQ(boost::asio::read(last_, boost::asio::buffer(text)), 6u);
}

// An accepted connection has the listening socket's filter, which must not affect its traffic.
TEST_F(SynFilterTest, ConnectionsThatAreAcceptedMeanwhileCarryBytes) {
  ASSERT_TRUE(Bar({make_address("127.0.0.2"), HostLine(make_address("::1"))}));
  ASSERT_TRUE(ComesIn("127.0.0.1", "127.0.0.1"));
  std::string sent(100'000, 'x'), received(100'000, ' ');
  boost::asio::write(last_client_, boost::asio::buffer(sent));
  boost::asio::read(last_, boost::asio::buffer(received));
  EXPECT_EQ(received, sent);
}

TEST_F(SynFilterTest, WhatIsNoSocketIsSaid) {
  EXPECT_FALSE(DropSynsFrom({make_address("127.0.0.2")}, {-1}));
}

}  // namespace
}  // namespace muster::rendezvous
