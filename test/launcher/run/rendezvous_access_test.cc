// Which node hosts the rendezvous, and which address it tells the others. The tests hold the ports
// that they use, so that no other program can take them.
#include "launcher/run/rendezvous_access.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "launcher/machine/network.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/server/server.h"
#include "test/rendezvous/support/join_request.h"
#include "test/rendezvous/support/recording_listener.h"
#include "test/support/run_until.h"

namespace muster::launcher {
namespace {

using rendezvous::RecordingListener;
using rendezvous::RequestFor;
using test::RunUntil;

class RendezvousAccessTest : public ::testing::Test {
 protected:
  ~RendezvousAccessTest() override {
    // Until gRPC has let go of every stream.
    io_.restart();
    io_.run();
  }

  static LaunchConfig ConfigFor(RendezvousMode mode, const rendezvous::Endpoint& endpoint,
                                int nodes = 2) {
    LaunchConfig config;
    config.mode = mode;
    config.endpoint = endpoint;
    config.min_nodes = config.max_nodes = nodes;
    return config;
  }
  // A job of several nodes with torchrun's static rendezvous.
  static LaunchConfig StaticConfigFor(const std::string& host, int node_rank) {
    LaunchConfig config = ConfigFor(RendezvousMode::kStatic, {host, FreePort().port()});
    config.node_rank = node_rank;
    return config;
  }
  static rendezvous::Endpoint FreeEndpoint(const std::string& host) {
    return {host, FreePort().port()};
  }
  // Held for as long as the test process runs.
  static const ReservedPort& FreePort() {
    static auto* const held = new std::vector<ReservedPort>();
    auto port = ReservedPort::Hold(0);
    EXPECT_TRUE(port.ok()) << port.status();
    held->push_back(*std::move(port));
    return held->back();
  }

  RendezvousAccess Open(const LaunchConfig& config) {
    auto access = RendezvousAccess::Open(io_, config, rendezvous::Credentials::Plaintext());
    EXPECT_TRUE(access.ok()) << access.status();
    return *std::move(access);
  }

  boost::asio::io_context io_;
};

TEST_F(RendezvousAccessTest, StandaloneJobHasNoNetwork) {
  const RendezvousAccess access = Open(ConfigFor(RendezvousMode::kStandalone, {}, 1));
  ASSERT_NE(access.server(), nullptr);
  EXPECT_EQ(access.server()->port(), 0);
  EXPECT_EQ(access.local_address(), "127.0.0.1");
}

// The guess of who owns an address is wrong behind aliases and second networks: torchrun's users
// then say is_host=1 on one node and is_host=0 on the others.
TEST_F(RendezvousAccessTest, UserMaySayWhoHosts) {
  LaunchConfig config = ConfigFor(RendezvousMode::kEndpoint, FreeEndpoint("127.0.0.1"));
  config.is_host = false;
  EXPECT_EQ(Open(config).server(), nullptr);
  config.is_host = true;
  const RendezvousAccess host = Open(config);
  EXPECT_NE(host.server(), nullptr);
  // Where the host cannot listen it does not look for another one.
  const auto second = RendezvousAccess::Open(io_, config, rendezvous::Credentials::Plaintext());
  EXPECT_EQ(second.status().message(), "cannot serve the rendezvous: listen on " +
                                           ToString(config.endpoint) + ": Address already in use");
  config.endpoint.host = "192.0.2.1";
  EXPECT_EQ(
      RendezvousAccess::Open(io_, config, rendezvous::Credentials::Plaintext()).status().message(),
      "cannot serve the rendezvous: listen on " + ToString(config.endpoint) +
          ": Cannot assign requested address");
}

// In a lease of a minute only a refusal that is trusted can be the end.
TEST_F(RendezvousAccessTest, RefusalsAreTrustedWhereTheUserSaysSo) {
  auto daemon = std::make_unique<rendezvous::Server>(io_);
  ASSERT_TRUE(daemon->Listen({"127.0.0.1", 0}, rendezvous::Credentials::Plaintext()).ok());
  LaunchConfig config = ConfigFor(RendezvousMode::kEndpoint, {"127.0.0.1", daemon->port()});
  config.is_host = false;
  config.trust_refusals = true;
  const RendezvousAccess access = Open(config);
  RecordingListener heard;
  const auto client = access.MakeClient(heard);
  rendezvous::JoinRequest request = RequestFor(1, 2);
  request.settings.lease = std::chrono::minutes(1);
  client->Join(request);
  ASSERT_TRUE(RunUntil(io_, [&] { return heard.Heard("welcome"); }));
  daemon.reset();
  ASSERT_TRUE(RunUntil(io_, [&] { return heard.Heard("lost: "); }));
}

TEST_F(RendezvousAccessTest, StaticJobOfOneNodeHasNoNetworkAndTheUsersAddress) {
  // Nobody resolves it: the workers of this one node do.
  const RendezvousAccess access =
      Open(ConfigFor(RendezvousMode::kFixedPort, {"no-such-host.invalid", 29500}, 1));
  ASSERT_NE(access.server(), nullptr);
  EXPECT_EQ(access.server()->port(), 0);
  EXPECT_EQ(access.local_address(), "no-such-host.invalid");
}

TEST_F(RendezvousAccessTest, NodeThatOwnsTheEndpointHostsIt) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const rendezvous::Endpoint endpoint = FreeEndpoint(host);
    const RendezvousAccess access = Open(ConfigFor(RendezvousMode::kEndpoint, endpoint));
    ASSERT_NE(access.server(), nullptr) << host;
    EXPECT_EQ(access.server()->port(), endpoint.port) << host;
    EXPECT_TRUE(rendezvous::IsLoopbackLiteral(access.local_address())) << access.local_address();
  }
}

TEST_F(RendezvousAccessTest, JobOfOneNodeWithAnEndpointHostsItForWhoeverLooks) {
  const rendezvous::Endpoint endpoint = FreeEndpoint("127.0.0.1");
  const RendezvousAccess access = Open(ConfigFor(RendezvousMode::kEndpoint, endpoint, 1));
  ASSERT_NE(access.server(), nullptr);
  EXPECT_EQ(access.server()->port(), endpoint.port);
}

TEST_F(RendezvousAccessTest, SecondNodeOfTheMachineJoinsTheFirst) {
  const LaunchConfig config = ConfigFor(RendezvousMode::kEndpoint, FreeEndpoint("127.0.0.1"));
  const RendezvousAccess first = Open(config);
  const RendezvousAccess second = Open(config);
  ASSERT_NE(first.server(), nullptr);
  EXPECT_EQ(second.server(), nullptr);
  EXPECT_EQ(second.local_address(), "127.0.0.1");

  RecordingListener first_heard, second_heard;
  const auto first_client = first.MakeClient(first_heard);
  const auto second_client = second.MakeClient(second_heard);
  first_client->Join(RequestFor(1, 2));
  second_client->Join(RequestFor(2, 2));
  EXPECT_TRUE(RunUntil(io_, [&] { return first_heard.Heard("start round 0: group 0/2"); }));
  EXPECT_TRUE(RunUntil(io_, [&] { return second_heard.Heard("start round 0: group 1/2"); }));
}

TEST_F(RendezvousAccessTest, EndpointOfAnotherMachineIsNotHosted) {
  const RendezvousAccess access = Open(ConfigFor(RendezvousMode::kEndpoint, {"192.0.2.1", 29400}));
  EXPECT_EQ(access.server(), nullptr);
  EXPECT_FALSE(access.local_address().empty());
  EXPECT_NE(access.local_address(), "192.0.2.1");
}

TEST_F(RendezvousAccessTest, EndpointThatDoesNotResolveIsLeftToTheClient) {
  const RendezvousAccess access =
      Open(ConfigFor(RendezvousMode::kEndpoint, {"no-such-host.invalid", 29400}));
  EXPECT_EQ(access.server(), nullptr);
  EXPECT_EQ(access.local_address(), HostName());
}

TEST_F(RendezvousAccessTest, NodeRankZeroHostsAStaticRendezvous) {
  const LaunchConfig config = StaticConfigFor("localhost", 0);
  const RendezvousAccess access = Open(config);
  ASSERT_NE(access.server(), nullptr);
  EXPECT_EQ(access.server()->port(), config.endpoint.port);
  EXPECT_EQ(access.local_address(), "localhost") << "as the others call it";
}

TEST_F(RendezvousAccessTest, OtherNodeRanksNeverHostAStaticRendezvous) {
  const RendezvousAccess access = Open(StaticConfigFor("127.0.0.1", 1));
  EXPECT_EQ(access.server(), nullptr);
  EXPECT_EQ(access.local_address(), "127.0.0.1");
}

TEST_F(RendezvousAccessTest, AddressThatTheUserGaveIsTold) {
  for (const RendezvousMode mode :
       {RendezvousMode::kStandalone, RendezvousMode::kFixedPort, RendezvousMode::kEndpoint}) {
    LaunchConfig config = ConfigFor(mode, FreeEndpoint("127.0.0.1"), 1);
    config.local_addr = "10.9.8.7";
    EXPECT_EQ(Open(config).local_address(), "10.9.8.7");
  }
}

TEST_F(RendezvousAccessTest, OwnNameThatIsLoopbackHereIsServedToTheOthersToo) {
  const EndpointView view = LookAtEndpoint({HostName(), 1});
  if (!view.loopback || rendezvous::IsLoopbackLiteral(HostName())) {
    GTEST_SKIP() << "this machine's name is no loopback address here";
  }
  const rendezvous::Endpoint endpoint = FreeEndpoint(HostName());
  const RendezvousAccess access = Open(ConfigFor(RendezvousMode::kEndpoint, endpoint));
  ASSERT_NE(access.server(), nullptr);
  EXPECT_EQ(access.local_address(), HostName());
  // Only a server on every address stands in the way of this one.
  rendezvous::Server other(io_);
  EXPECT_EQ(other.Listen({"127.0.0.3", endpoint.port}, rendezvous::Credentials::Plaintext()).code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(RendezvousAccessTest, HostWaitsUntilTheLastNodeHasLeft) {
  RendezvousAccess access = Open(ConfigFor(RendezvousMode::kEndpoint, FreeEndpoint("127.0.0.1")));
  RecordingListener heard;
  auto other = access.MakeClient(heard);
  other->Join(RequestFor(1, 2));
  bool closed = false;
  access.Close("", [&] { closed = true; });
  ASSERT_TRUE(RunUntil(io_, [&] { return heard.Heard("welcome"); }));
  EXPECT_FALSE(closed);
  EXPECT_FALSE(heard.Heard("verdict")) << "its job goes on";
  other->Leave("", [] {});
  EXPECT_TRUE(RunUntil(io_, [&] { return closed; }));
  EXPECT_EQ(access.server()->port(), 0);
}

TEST_F(RendezvousAccessTest, HostThatHasFailedEndsTheJobOfTheOthers) {
  RendezvousAccess access = Open(ConfigFor(RendezvousMode::kEndpoint, FreeEndpoint("127.0.0.1")));
  RecordingListener heard;
  auto other = access.MakeClient(heard);
  other->Join(RequestFor(1, 2));
  bool closed = false;
  access.Close("the node that hosts the rendezvous has failed", [&] { closed = true; });
  ASSERT_TRUE(RunUntil(io_, [&] {
    return heard.Heard(
        "verdict: job 'job' was closed: the node that hosts the rendezvous has failed");
  }));
  EXPECT_FALSE(closed);
  other->Leave("", [] {});
  EXPECT_TRUE(RunUntil(io_, [&] { return closed; }));
}

TEST_F(RendezvousAccessTest, AccessToAnotherMachineClosesFromTheLoop) {
  RendezvousAccess access = Open(ConfigFor(RendezvousMode::kEndpoint, {"192.0.2.1", 29400}));
  bool closed = false;
  access.Close("", [&] { closed = true; });
  EXPECT_FALSE(closed);
  io_.run();
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace muster::launcher
