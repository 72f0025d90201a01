// Reserved ports with real sockets: what other programs get when they ask the kernel for any port,
// or for the reserved one.
#include "launcher/machine/network.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

// A TCP socket as programs create it.
class Socket {
 public:
  explicit Socket(int family) : family_(family), fd_(socket(family, SOCK_STREAM, 0)) {}
  ~Socket() { close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  Socket& WithReuseAddress() {
    const int on = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return *this;
  }

  // Binds to loopback or to all addresses; returns 0 or errno.
  int Bind(std::uint16_t port, bool loopback) {
    if (family_ == AF_INET6) {
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      address.sin6_port = htons(port);
      address.sin6_addr = loopback ? in6addr_loopback : in6addr_any;
      return bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
    return bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  }

  int Listen() { return listen(fd_, 8) == 0 ? 0 : errno; }

  std::uint16_t port() const {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  }

 private:
  const int family_;
  const int fd_;
};

bool HasIpv6() {
  return Socket(AF_INET6).Bind(0, true) == 0;
}

TEST(ReservedPortTest, FreePortIsFoundAndEachHolderHasItsOwn) {
  const auto first = ReservedPort::Hold(0);
  const auto second = ReservedPort::Hold(0);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GT(first->port(), 0);
  EXPECT_NE(first->port(), second->port());
}

TEST(ReservedPortTest, NobodyWhoAsksForAnyFreePortIsGivenAHeldOne) {
  // The kernel picks one of 28,000 free ports at random: if it also picked held ones, one of the 50
  // would be among these with a probability of 97 %.
  constexpr int kTries = 2000;
  std::vector<ReservedPort> held;
  std::vector<bool> is_held(65536);
  for (int i = 0; i < 50; ++i) {
    auto port = ReservedPort::Hold(0);
    ASSERT_TRUE(port.ok()) << port.status();
    is_held[port->port()] = true;
    held.push_back(*std::move(port));
  }
  for (int i = 0; i < kTries; ++i) {
    Socket other(i % 4 < 2 ? AF_INET : AF_INET6);
    if (i % 2 == 0) other.WithReuseAddress();
    if (other.Bind(0, i % 3 == 0) != 0) continue;  // no IPv6 here
    ASSERT_FALSE(is_held[other.port()]) << other.port();
  }
}

TEST(ReservedPortTest, ServerWithReuseAddressListensOnTheHeldPort) {
  struct Case {
    const char* address;
    int family;
    bool loopback;
  };
  for (const Case& c : {Case{"127.0.0.1", AF_INET, true}, Case{"0.0.0.0", AF_INET, false},
                        Case{"[::1]", AF_INET6, true}, Case{"[::]", AF_INET6, false}}) {
    if (c.family == AF_INET6 && !HasIpv6()) continue;
    const auto held = ReservedPort::Hold(0);
    ASSERT_TRUE(held.ok()) << held.status();
    Socket server(c.family);
    server.WithReuseAddress();
    EXPECT_EQ(server.Bind(held->port(), c.loopback), 0) << c.address;
    EXPECT_EQ(server.Listen(), 0) << c.address;
  }
}

TEST(ReservedPortTest, ProgramWithoutReuseAddressDoesNotGetTheHeldPort) {
  const auto held = ReservedPort::Hold(0);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(Socket(AF_INET).Bind(held->port(), false), EADDRINUSE);
  EXPECT_EQ(Socket(AF_INET).Bind(held->port(), true), EADDRINUSE);
}

TEST(ReservedPortTest, PortThatTheUserChoseIsHeld) {
  std::uint16_t port = 0;
  {
    const auto free = ReservedPort::Hold(0);
    ASSERT_TRUE(free.ok()) << free.status();
    port = free->port();
  }
  const auto held = ReservedPort::Hold(port);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(held->port(), port);
}

TEST(ReservedPortTest, PortThatSomebodyListensOnIsRefusedWithItsNumber) {
  for (const bool loopback : {true, false}) {
    Socket server(AF_INET);
    ASSERT_EQ(server.WithReuseAddress().Bind(0, loopback), 0);
    ASSERT_EQ(server.Listen(), 0);
    const auto held = ReservedPort::Hold(server.port());
    ASSERT_FALSE(held.ok());
    EXPECT_EQ(held.status().message(), "hold port " + std::to_string(server.port()) +
                                           " for the workers: Address already in use");
  }
}

TEST(ReservedPortTest, PortIsFreeOnceItsHolderIsGone) {
  std::uint16_t port = 0;
  {
    const auto held = ReservedPort::Hold(0);
    ASSERT_TRUE(held.ok()) << held.status();
    port = held->port();
    ASSERT_EQ(Socket(AF_INET).Bind(port, true), EADDRINUSE);
  }
  EXPECT_EQ(Socket(AF_INET).Bind(port, true), 0);
}

TEST(ReservedPortTest, MovedHolderHoldsOn) {
  auto held = ReservedPort::Hold(0);
  ASSERT_TRUE(held.ok()) << held.status();
  const std::uint16_t port = held->port();
  {
    ReservedPort moved = *std::move(held);
    EXPECT_EQ(moved.port(), port);
    EXPECT_EQ(Socket(AF_INET).Bind(port, true), EADDRINUSE);
  }
  EXPECT_EQ(Socket(AF_INET).Bind(port, true), 0) << "what was moved from holds nothing";
}

TEST(ReservedPortTest, AssignedHolderTakesTheOtherPort) {
  auto first = ReservedPort::Hold(0);
  auto second = ReservedPort::Hold(0);
  ASSERT_TRUE(first.ok() && second.ok());
  const std::uint16_t old_port = first->port();
  const std::uint16_t new_port = second->port();
  {
    ReservedPort keeper = *std::move(first);
    keeper = *std::move(second);
    EXPECT_EQ(keeper.port(), new_port);
    EXPECT_EQ(Socket(AF_INET).Bind(new_port, true), EADDRINUSE);
    EXPECT_EQ(Socket(AF_INET).Bind(old_port, true), 0) << "what it held before is let go";
  }
  EXPECT_EQ(Socket(AF_INET).Bind(new_port, true), 0);
}

}  // namespace
}  // namespace muster::launcher
