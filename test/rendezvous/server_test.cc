// The daemon as an object: where it can listen, and how it shuts down.
#include "rendezvous/server/server.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/client/in_process_client.h"
#include "rendezvous/identity/token.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/listening_socket.h"
#include "test/rendezvous/support/join_request.h"
#include "test/rendezvous/support/recording_listener.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using test::RunUntil;
using ::testing::StartsWith;

class ServerTest : public ::testing::Test {
 protected:
  absl::Status Listen(Server& server, const Endpoint& endpoint) {
    return server.Listen(endpoint, Credentials::Plaintext());
  }

  boost::asio::io_context io_;
};

TEST_F(ServerTest, PortZeroTakesAFreePort) {
  Server first(io_), second(io_);
  ASSERT_TRUE(Listen(first, {"127.0.0.1", 0}).ok());
  ASSERT_TRUE(Listen(second, {"127.0.0.1", 0}).ok());
  EXPECT_NE(first.port(), 0);
  EXPECT_NE(first.port(), second.port());
}

TEST_F(ServerTest, SecondDaemonOnAPortIsToldThatItIsTaken) {
  Server first(io_), second(io_);
  ASSERT_TRUE(Listen(first, {"127.0.0.1", 0}).ok());
  const absl::Status status = Listen(second, {"127.0.0.1", first.port()});
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(status.message(),
            "listen on 127.0.0.1:" + std::to_string(first.port()) + ": Address already in use");
  EXPECT_EQ(second.port(), 0);
}

TEST_F(ServerTest, AddressOfAnotherMachineIsRefusedWithTheCause) {
  Server server(io_);
  const absl::Status status = Listen(server, {"192.0.2.1", 29400});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "listen on 192.0.2.1:29400: Cannot assign requested address");
}

TEST_F(ServerTest, NameThatDoesNotResolveIsRefusedWithTheCause) {
  Server server(io_);
  const absl::Status status = Listen(server, {"no-such-host.invalid", 29400});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), StartsWith("listen on no-such-host.invalid:29400: "));
}

TEST_F(ServerTest, PortIsFreeOnceTheServerHasStopped) {
  Server first(io_), second(io_);
  ASSERT_TRUE(Listen(first, {"127.0.0.1", 0}).ok());
  const std::uint16_t port = first.port();
  bool stopped = false;
  first.Stop([&] { stopped = true; });
  EXPECT_FALSE(stopped) << "it is told from the loop";
  ASSERT_TRUE(RunUntil(io_, [&] { return stopped; }));
  EXPECT_EQ(first.port(), 0);
  EXPECT_TRUE(Listen(second, {"127.0.0.1", port}).ok());
}

// A leader could not say that it was still there, nor hear that it was to end, while contexts of
// TLS were being made for dozens of tenants.
TEST_F(ServerTest, LoopGoesOnWhileItIsPreparedAndListenFindsItReady) {
  Server server(io_);
  bool prepared = false;
  server.Prepare(Credentials::FromToken(Token::Random(), Role::kDaemon), [&] { prepared = true; });
  EXPECT_FALSE(prepared) << "it is told from the loop";
  ASSERT_TRUE(RunUntil(io_, [&] { return prepared; }));
  EXPECT_EQ(server.port(), 0);
  auto sockets = ListenAt(io_, {"127.0.0.1", 0});
  ASSERT_TRUE(sockets.ok());
  EXPECT_TRUE(server.Listen(*std::move(sockets), std::nullopt).ok());
  EXPECT_NE(server.port(), 0);
}

TEST_F(ServerTest, MayEndWhileItIsPreparedAndTellsNobodyThen) {
  bool prepared = false;
  {
    Server server(io_);
    server.Prepare(Credentials::Plaintext(), [&] { prepared = true; });
  }
  io_.restart();
  io_.run();
  EXPECT_FALSE(prepared);
}

TEST_F(ServerTest, ServerThatNeverListenedStopsFromTheLoop) {
  Server server(io_);
  bool stopped = false;
  server.Stop([&] { stopped = true; });
  EXPECT_FALSE(stopped);
  io_.run();
  EXPECT_TRUE(stopped);
}

// A second signal while the host of a job was ending it ended in std::terminate.
TEST_F(ServerTest, StopThatIsAskedForTwiceIsToldTwice) {
  Server server(io_);
  ASSERT_TRUE(Listen(server, {"127.0.0.1", 0}).ok());
  int told = 0;
  server.Stop([&] { ++told; });
  server.Stop([&] { ++told; });
  ASSERT_TRUE(RunUntil(io_, [&] { return told == 2; }));
}

TEST_F(ServerTest, ServerThatIsDestroyedWhileItStopsFinishesThat) {
  bool stopped = false;
  {
    Server server(io_);
    ASSERT_TRUE(Listen(server, {"127.0.0.1", 0}).ok());
    server.Stop([&] { stopped = true; });
  }
  EXPECT_TRUE(stopped);
}

TEST_F(ServerTest, StoppedMayDestroyTheServer) {
  auto server = std::make_unique<Server>(io_);
  ASSERT_TRUE(Listen(*server, {"127.0.0.1", 0}).ok());
  server->Stop([&] { server.reset(); });
  ASSERT_TRUE(RunUntil(io_, [&] { return server == nullptr; }));
}

TEST_F(ServerTest, JobInThisProcessGoesOnWhenTheListeningEnds) {
  Server server(io_);
  ASSERT_TRUE(Listen(server, {"127.0.0.1", 0}).ok());
  RecordingListener heard;
  InProcessClient client(io_, server.daemon_loop(), heard);
  client.Join(RequestFor(1, 1));
  bool stopped = false;
  server.Stop([&] { stopped = true; });
  ASSERT_TRUE(RunUntil(io_, [&] { return stopped && heard.Last<Assignment>() != nullptr; }));
  client.Say(WorkersExited{heard.Last<Assignment>()->id(), {.succeeded = true}});
  ASSERT_TRUE(RunUntil(io_, [&] { return heard.Last<Verdict>() != nullptr; }));
  bool left = false;
  client.Leave("", [&] { left = true; });
  ASSERT_TRUE(RunUntil(io_, [&] { return left; }));
  EXPECT_EQ(server.daemon_loop().job_count(), 0);
}

// The caller of Drain may hold the server by a pointer, and was called back during its destruction.
TEST_F(ServerTest, ServerThatIsDestroyedWhileItDrainsTellsNobodyThatItIsDone) {
  bool drained = false;
  {
    Server server(io_);
    RecordingListener heard;
    InProcessClient client(io_, server.daemon_loop(), heard);
    client.Join(RequestFor(1, 2));
    server.Drain("it ends", [&] { drained = true; });
  }
  EXPECT_FALSE(drained);
}

TEST_F(ServerTest, DrainWaitsForTheLastAgentAndTakesNoNewOnes) {
  Server server(io_);
  RecordingListener heard, late_heard;
  InProcessClient client(io_, server.daemon_loop(), heard);
  InProcessClient late(io_, server.daemon_loop(), late_heard);
  client.Join(RequestFor(1, 2));
  bool drained = false;
  server.Drain("the daemon is stopping (SIGTERM)", [&] { drained = true; });
  late.Join(RequestFor(2, 2));
  ASSERT_TRUE(RunUntil(io_, [&] { return late_heard.Last<Refused>() != nullptr; }));
  EXPECT_EQ(late_heard.Last<Refused>()->sentence,
            "this rendezvous accepts no new nodes: the daemon is stopping (SIGTERM)");
  EXPECT_FALSE(drained);
  client.Leave("", [] {});
  ASSERT_TRUE(RunUntil(io_, [&] { return drained; }));
}

}  // namespace
}  // namespace muster::rendezvous
