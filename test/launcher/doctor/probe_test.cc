// Both ends of a measurement, over loopback.
#include "launcher/doctor/probe.h"

#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include <sys/wait.h>

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

constexpr char kKey[] = "0123456789abcdef";

// Runs `other` in a process of its own, in the place of the other host, and waits for it.
class OtherHost {
 public:
  explicit OtherHost(const std::function<void()>& other) : pid_(::fork()) {
    if (pid_ != 0) return;
    other();
    ::_exit(0);
  }
  ~OtherHost() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  const pid_t pid_;
};

TEST(ProbeTest, TheWayOverLoopback) {
  const auto port = ProbePort::Open("127.0.0.1", 0);
  ASSERT_TRUE(port.ok()) << port.status();
  LinkMeasurement link;
  Arrival arrival;
  {
    OtherHost other([&] { Probe("127.0.0.1", port->port(), kKey); });
    arrival = port->Receive(kKey, std::chrono::seconds(20));
  }
  {
    OtherHost other([&] { port->Receive(kKey, std::chrono::seconds(20)); });
    link = Probe("127.0.0.1", port->port(), kKey);
  }
  EXPECT_EQ(arrival.largest_packet, 16000) << "the largest that is tried";
  EXPECT_EQ(link.outcome, DialOutcome::kConnected);
  EXPECT_EQ(link.trouble, "");
  EXPECT_FALSE(link.stalls);
  EXPECT_GT(link.latency_us, 0);
  EXPECT_GT(link.bytes_per_s, 0);
  EXPECT_LT(std::abs(link.clock_ahead_s), 1) << "it is one clock";
}

TEST(ProbeTest, WhoDoesNotKnowTheKeyIsNotAnswered) {
  const auto port = ProbePort::Open("127.0.0.1", 0);
  ASSERT_TRUE(port.ok());
  OtherHost other([&] { port->Receive(kKey, std::chrono::seconds(20)); });
  const LinkMeasurement stranger = Probe("127.0.0.1", port->port(), "another key, yes");
  EXPECT_NE(stranger.trouble, "");
  EXPECT_EQ(stranger.latency_us, 0);
  EXPECT_EQ(Probe("127.0.0.1", port->port(), kKey).trouble, "") << "who knows it is served after";
}

TEST(ProbeTest, NobodyListens) {
  std::uint16_t gone = 0;
  {
    const auto port = ProbePort::Open("127.0.0.1", 0);
    ASSERT_TRUE(port.ok());
    gone = port->port();
  }
  EXPECT_EQ(Probe("127.0.0.1", gone, kKey).outcome, DialOutcome::kRefused);
  EXPECT_EQ(Probe("not an address", 1, kKey).outcome, DialOutcome::kFailed);
}

TEST(ProbeTest, APortThatIsTakenIsReplaced) {
  const auto first = ProbePort::Open("127.0.0.1", 0);
  ASSERT_TRUE(first.ok());
  const auto second = ProbePort::Open("127.0.0.1", first->port());
  ASSERT_TRUE(second.ok());
  EXPECT_NE(second->port(), first->port());
  EXPECT_FALSE(ProbePort::Open("192.0.2.1", 0).ok()) << "no address of this machine";
}

}  // namespace
}  // namespace muster::launcher
