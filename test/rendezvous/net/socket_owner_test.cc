// Connections of this process, of a child running as another user, and of one that is gone.
#include "rendezvous/net/peer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <boost/asio/ip/tcp.hpp>

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

constexpr uid_t kOther = 65534;

class SocketOwnerTest : public testing::TestWithParam<const char*> {
 protected:
  SocketOwnerTest() : door_(io_) {
    const tcp::endpoint at(boost::asio::ip::make_address(GetParam()), 0);
    door_.open(at.protocol());
    door_.bind(at);
    door_.listen();
  }

  // Where a client reaches it: an IPv4 address if it listens on all.
  tcp::endpoint At() const {
    const tcp::endpoint own = door_.local_endpoint();
    const bool all = own.address().is_unspecified();
    return {all ? boost::asio::ip::make_address("127.0.0.1") : own.address(), own.port()};
  }

  static bool MayBecomeAnother() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::setuid(kOther) == 0 ? 0 : 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status == 0;
  }

  // Runs in a child as another user, which then waits to be ended.
  pid_t AsAnother(const std::function<void()>& what) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    if (::setuid(kOther) != 0) ::_exit(1);
    what();
    ::pause();
    ::_exit(0);
  }
  static void End(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  boost::asio::io_context io_;
  tcp::acceptor door_;
  uid_t user_ = 0;
};

TEST_P(SocketOwnerTest, OfThisUserItIsOurs) {
  tcp::socket client(io_);
  client.connect(At());
  tcp::socket accepted = door_.accept();
  EXPECT_EQ(OwnerOfPeer(accepted.native_handle(), &user_), PeerOwner::kOurs);
}

// A user of the machine wrote into the store of another user's job.
TEST_P(SocketOwnerTest, OfAnotherUserItIsNot) {
  if (!MayBecomeAnother()) GTEST_SKIP() << "only root can become another user";
  const tcp::endpoint at = At();
  const pid_t child = AsAnother([&] {
    static tcp::socket client(io_);
    client.connect(at);
  });
  tcp::socket accepted = door_.accept();
  EXPECT_EQ(OwnerOfPeer(accepted.native_handle(), &user_), PeerOwner::kOthers);
  EXPECT_EQ(user_, kOther);
  End(child);
}

// The peer sent its data and closed before its socket was checked: the kernel reports a socket that
// no process holds any more as root's.
TEST_P(SocketOwnerTest, WhatIsClosedAlreadyIsNobodysOfOurs) {
  tcp::socket client(io_);
  client.connect(At());
  tcp::socket accepted = door_.accept();
  client.close();
  EXPECT_EQ(OwnerOfPeer(accepted.native_handle(), &user_), PeerOwner::kOthers);
  EXPECT_EQ(user_, static_cast<uid_t>(-1));
}

// A worker sent its request, shut down its sending side, and got no answer: it was turned away if
// that was faster than the store.
TEST_P(SocketOwnerTest, WhatIsHalfClosedIsStillWhoseItWas) {
  tcp::socket client(io_);
  client.connect(At());
  tcp::socket accepted = door_.accept();
  client.shutdown(tcp::socket::shutdown_send);
  EXPECT_EQ(OwnerOfPeer(accepted.native_handle(), &user_), PeerOwner::kOurs);
  accepted.shutdown(tcp::socket::shutdown_send);
  client.close();
  EXPECT_EQ(OwnerOfPeer(accepted.native_handle(), &user_), PeerOwner::kOthers);
}

TEST_P(SocketOwnerTest, WhatAnotherUserHasHalfClosedIsHis) {
  if (!MayBecomeAnother()) GTEST_SKIP() << "only root can become another user";
  const tcp::endpoint at = At();
  const pid_t child = AsAnother([&] {
    static tcp::socket client(io_);
    client.connect(at);
    client.shutdown(tcp::socket::shutdown_send);
  });
  tcp::socket accepted = door_.accept();
  char byte = 0;
  boost::system::error_code end;
  accepted.read_some(boost::asio::buffer(&byte, 1), end);
  EXPECT_EQ(OwnerOfPeer(accepted.native_handle(), &user_), PeerOwner::kOthers);
  EXPECT_EQ(user_, kOther);
  End(child);
}

TEST_P(SocketOwnerTest, WhatIsNoConnectionIsNobodysOfOurs) {
  EXPECT_EQ(OwnerOfPeer(door_.native_handle(), &user_), PeerOwner::kOthers);
  EXPECT_EQ(OwnerOfPeer(-1, &user_), PeerOwner::kOthers);
}

INSTANTIATE_TEST_SUITE_P(Addresses, SocketOwnerTest,
                         testing::Values("127.0.0.1", "127.0.0.2", "::1", "0.0.0.0", "::"),
                         [](const auto& info) {
                           std::string name;
                           for (const char c : std::string(info.param)) {
                             name += c == '.' ? "d" : c == ':' ? "c" : std::string(1, c);
                           }
                           return name;
                         });

}  // namespace
}  // namespace muster::rendezvous
