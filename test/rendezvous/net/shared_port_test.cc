// The first byte of a connection determines its protocol. Floods of connections that are silent or
// send garbage leave room for proper ones.
#include "rendezvous/net/shared_port.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "rendezvous/net/listening_socket.h"
#include "rendezvous/wire/first_byte.h"
#include "rendezvous/wire/liveness_probe.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using test::RunUntil;

constexpr std::chrono::hours kSharedPortNever(1);

std::size_t OpenFiles() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

class SharedPortTest : public ::testing::Test {
 protected:
  SharedPortTest() {
    // Room for the flood's clients, which are also in this process.
    ::getrlimit(RLIMIT_NOFILE, &files_before_);
    const rlimit files = {std::min<rlim_t>(files_before_.rlim_max, 4096), files_before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &files);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_)));
    Open({});
  }
  ~SharedPortTest() override {
    spdlog::set_default_logger(logger_before_);
    ::setrlimit(RLIMIT_NOFILE, &files_before_);
  }

  void Open(SharedPortOptions options) {
    port_.reset();
    auto sockets = ListenAt(io_, {"127.0.0.1", 0});
    if (!sockets.ok()) std::abort();
    at_ = sockets->front().local_endpoint();
    port_ = std::make_unique<SharedPort>(
        io_, *std::move(sockets),
        [this](tcp::socket s) {
          // As for every connection that has completed its handshake.
          boost::asio::post(io_, [this, from = s.remote_endpoint()] {
            if (port_ != nullptr) port_->Called({from.address().to_string(), from.port()});
          });
          grpc_.push_back(std::move(s));
        },
        [this](tcp::socket s) { notices_.push_back(std::move(s)); }, options);
  }

  void ServeStore() {
    port_->OnStoreConnection([this](tcp::socket s) { store_.push_back(std::move(s)); });
  }

  // Clients with descriptors above 1000, out of the way of the port's.
  std::vector<int> Flood(int count, const std::string& bytes = "") {
    std::vector<int> clients;
    for (int i = 0; i < count; ++i) {
      tcp::socket socket = Connect();
      boost::system::error_code ignored;
      if (!bytes.empty()) boost::asio::write(socket, boost::asio::buffer(bytes), ignored);
      clients.push_back(::fcntl(socket.native_handle(), F_DUPFD_CLOEXEC, 1000));
      EXPECT_GE(clients.back(), 1000);
      // As often as a daemon without other work.
      io_.restart();
      io_.poll();
    }
    return clients;
  }

  static void Leave(const std::vector<int>& clients) {
    for (const int client : clients) ::close(client);
  }

  // An agent comes and speaks at once.
  bool AgentGetsIn() {
    const std::size_t before = grpc_.size();
    tcp::socket agent = Connect();
    boost::asio::write(agent, boost::asio::buffer("PRI * HTTP/2.0", 14));
    return RunUntil(io_, [&] { return grpc_.size() > before; });
  }

  std::size_t Logged(const std::string& words) const {
    const std::string text = log_.str();
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(words, at)) != std::string::npos; ++at) ++count;
    return count;
  }

  tcp::socket Connect() {
    tcp::socket socket(io_);
    socket.connect(at_);
    return socket;
  }

  // What the new owner of `socket` can read.
  static std::string ReadAll(tcp::socket& socket) {
    char bytes[64];
    boost::system::error_code error;
    return {bytes, socket.read_some(boost::asio::buffer(bytes), error)};
  }

  // The other end has closed it.
  static bool IsClosed(tcp::socket& socket) {
    char byte;
    boost::system::error_code error;
    socket.non_blocking(true);
    socket.read_some(boost::asio::buffer(&byte, 1), error);
    return error && error != boost::asio::error::would_block;
  }

  boost::asio::io_context io_;
  rlimit files_before_ = {};
  const std::shared_ptr<spdlog::logger> logger_before_ = spdlog::default_logger();
  std::ostringstream log_;
  tcp::endpoint at_;
  std::vector<tcp::socket> grpc_;
  std::vector<tcp::socket> notices_;
  std::vector<tcp::socket> store_;
  std::unique_ptr<SharedPort> port_;
};

TEST_F(SharedPortTest, EachProtocolGetsItsConnectionsWithNothingRead) {
  ServeStore();
  tcp::socket agent = Connect();
  tcp::socket worker = Connect();
  tcp::socket old_worker = Connect();
  boost::asio::write(agent, boost::asio::buffer("PRI * HTTP/2.0", 14));
  boost::asio::write(worker, boost::asio::buffer("\0\xce\xf7\x85\x3c", 5));
  ASSERT_TRUE(RunUntil(io_, [this] { return grpc_.size() == 1 && store_.size() == 1; }));
  boost::asio::write(old_worker, boost::asio::buffer("\3", 1));
  ASSERT_TRUE(RunUntil(io_, [this] { return store_.size() == 2; }));
  EXPECT_EQ(ReadAll(grpc_[0]), "PRI * HTTP/2.0");
  EXPECT_EQ(ReadAll(store_[0]), std::string("\0\xce\xf7\x85\x3c", 5));
  EXPECT_EQ(ReadAll(store_[1]), "\3");
}

TEST_F(SharedPortTest, ConnectionThatSaysNothingIsKeptUntilItGoes) {
  ServeStore();
  tcp::socket callback = Connect();
  tcp::socket worker = Connect();
  boost::asio::write(worker, boost::asio::buffer("\3", 1));
  ASSERT_TRUE(RunUntil(io_, [this] { return store_.size() == 1; }));
  EXPECT_EQ(port_->silent(), 1u);
  callback.close();
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->silent() == 0; }));
  EXPECT_TRUE(grpc_.empty());
}

TEST_F(SharedPortTest, WithoutAStoreItsClientsAreClosed) {
  tcp::socket worker = Connect();
  boost::asio::write(worker, boost::asio::buffer("\3", 1));
  EXPECT_TRUE(RunUntil(io_, [&] { return IsClosed(worker); }));
  EXPECT_EQ(port_->silent(), 0u);
}

TEST_F(SharedPortTest, WhatWaitsIsClosedWithThePort) {
  tcp::socket silent = Connect();
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->silent() == 1; }));
  port_.reset();
  EXPECT_TRUE(IsClosed(silent));
}

// "After a port scan no agent could join any more until we restarted the daemon."
TEST_F(SharedPortTest, AgentsGetInDuringAndAfterAFloodOfSilentConnections) {
  constexpr int kCap = 200;
  Open({.fd_cap = kCap, .handshake_timeout = kSharedPortNever});
  const std::size_t files = OpenFiles();
  const std::vector<int> clients = Flood(600);
  EXPECT_TRUE(RunUntil(io_, [this] { return port_->stats().accepted == 600; }));
  EXPECT_LE(port_->silent(), kCap / 4u);
  EXPECT_EQ(port_->stats().timed_out, 600 - port_->silent());
  EXPECT_TRUE(AgentGetsIn());
  Leave(clients);
  EXPECT_TRUE(AgentGetsIn());
  EXPECT_TRUE(RunUntil(io_, [this] { return port_->silent() == 0; }));
  EXPECT_TRUE(RunUntil(io_, [&] { return OpenFiles() == files + grpc_.size(); }));
  EXPECT_EQ(port_->stats().refused_over_cap, 0u);
}

TEST_F(SharedPortTest, SilentConnectionsHaveTheHandshakeTimeout) {
  Open({.handshake_timeout = std::chrono::milliseconds(50)});
  tcp::socket first = Connect();
  tcp::socket second = Connect();
  EXPECT_TRUE(RunUntil(io_, [&] { return IsClosed(first) && IsClosed(second); }));
  EXPECT_EQ(port_->stats(), (SharedPortStats{.accepted = 2, .timed_out = 2}));
  EXPECT_EQ(log_.str(), "") << "one that is slow is no flood";
}

// Workers of PyTorch 1.13 spun on a connection that we had closed.
TEST_F(SharedPortTest, WhereAStoreIsServedSilenceIsNoReasonToCloseUntilItsEnd) {
  Open({.handshake_timeout = std::chrono::milliseconds(50)});
  ServeStore();
  tcp::socket callback = Connect();
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->silent() == 1; }));
  // Another port without a store shows when the timeout is over.
  auto sockets = ListenAt(io_, {"127.0.0.1", 0});
  ASSERT_TRUE(sockets.ok());
  tcp::socket witness(io_);
  witness.connect(sockets->front().local_endpoint());
  SharedPort other(io_, *std::move(sockets), nullptr, nullptr,
                   {.handshake_timeout = std::chrono::milliseconds(100)});
  ASSERT_TRUE(RunUntil(io_, [&] { return IsClosed(witness); }));
  EXPECT_EQ(port_->silent(), 1u);
  port_->OnStoreConnection(nullptr);
  EXPECT_TRUE(RunUntil(io_, [&] { return IsClosed(callback); }));
  EXPECT_EQ(port_->stats().timed_out, 1u);
}

TEST_F(SharedPortTest, WhereAStoreIsServedSilentConnectionsMayTakeHalfAndThenTheOldestGoes) {
  Open({.fd_cap = 200});
  ServeStore();
  tcp::socket oldest = Connect();
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->silent() == 1; }));
  const std::vector<int> clients = Flood(99);
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->silent() == 100; }));
  EXPECT_FALSE(IsClosed(oldest));
  const std::vector<int> more = Flood(1);
  EXPECT_TRUE(RunUntil(io_, [&] { return IsClosed(oldest); }));
  EXPECT_EQ(port_->silent(), 100u);
  Leave(clients);
  Leave(more);
}

// A connection that has spoken never counts as silent, however late we check.
TEST_F(SharedPortTest, FloodBehindAnAgentDoesNotPushItOut) {
  Open({.fd_cap = 40, .handshake_timeout = kSharedPortNever});
  tcp::socket agent = Connect();
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->silent() == 1; }));
  boost::asio::write(agent, boost::asio::buffer("PRI", 3));
  std::vector<tcp::socket> clients;
  for (int i = 0; i < 30; ++i) clients.push_back(Connect());
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->stats().accepted == 31; }));
  EXPECT_EQ(grpc_.size(), 1u);
}

// "977 connections that were silent after their first words kept our agent out."
TEST_F(SharedPortTest, IdleHttp2ConnectionsMayTakeAQuarterAndAnAgentsIsNoneOfThem) {
  Open({.fd_cap = 200});
  tcp::socket agent = Connect();
  boost::asio::write(agent, boost::asio::buffer("PRI", 3));
  ASSERT_TRUE(RunUntil(io_, [this] { return grpc_.size() == 1; }));
  const auto agent_session = port_->Attend({"127.0.0.1", agent.local_endpoint().port()});
  ASSERT_NE(agent_session, nullptr);
  const std::vector<int> clients = Flood(100, "PRI");
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->stats().accepted == 101; }));
  // A quarter of 200 is left, less the second descriptor of the last one's handshake.
  EXPECT_EQ(port_->stats().idle, 51u);
  EXPECT_FALSE(IsClosed(agent));
  EXPECT_EQ(Logged("too many connections"), 1u);
  EXPECT_TRUE(AgentGetsIn());
  Leave(clients);
}

TEST_F(SharedPortTest, ConnectionsOverTheCapAreClosedAndCounted) {
  Open({.fd_cap = 60});
  // gRPC keeps them.
  const std::vector<int> clients = Flood(200, "PRI");
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->stats().accepted == 200; }));
  ASSERT_FALSE(grpc_.empty());
  EXPECT_EQ(port_->stats().refused_over_cap, 200 - grpc_.size());
  for (tcp::socket& taken : grpc_) EXPECT_LT(taken.native_handle(), 60);
  grpc_.clear();
  EXPECT_TRUE(AgentGetsIn());
  Leave(clients);
}

TEST_F(SharedPortTest, CapFollowsTheLimitOfTheProcess) {
  rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const std::vector<int> clients = Flood(200, "PRI");
  ASSERT_TRUE(RunUntil(io_, [this] { return grpc_.size() == 200; }));
  const rlimit lowered = {100, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &lowered);
  grpc_.erase(grpc_.begin(), grpc_.begin() + 100);
  while (port_->stats().refused_over_cap == 0) {
    tcp::socket agent(io_);
    boost::system::error_code error;
    agent.connect(at_, error);
    ASSERT_FALSE(error) << "accept() must not be the one who finds that no descriptor is left";
    boost::asio::write(agent, boost::asio::buffer("PRI", 3), error);
    io_.restart();
    io_.poll();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  for (tcp::socket& taken : std::span(grpc_).subspan(100)) EXPECT_LT(taken.native_handle(), 68);
  EXPECT_TRUE(AgentGetsIn());
  Leave(clients);
}

// "A node left, and now and then the others learned of it seconds later, or never": a gRPC thread
// was blocked in recv() for an agent that had spoken before we accepted it.
TEST_F(SharedPortTest, WhatIsHandedOnDoesNotBlockHoweverSoonItSpoke) {
  tcp::socket soon = Connect();
  boost::asio::write(soon, boost::asio::buffer("PRI * HTTP/2.0", 14));
  ASSERT_TRUE(RunUntil(io_, [this] { return grpc_.size() == 1; }));
  tcp::socket late = Connect();
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->silent() == 1; }));
  boost::asio::write(late, boost::asio::buffer("PRI * HTTP/2.0", 14));
  ASSERT_TRUE(RunUntil(io_, [this] { return grpc_.size() == 2; }));
  for (tcp::socket& connection : grpc_) {
    EXPECT_NE(::fcntl(connection.native_handle(), F_GETFL) & O_NONBLOCK, 0);
  }
}

// "A script whose host had lost power still counted at the barrier an hour later."
TEST_F(SharedPortTest, KernelAsksAfterHostsThatSpeakHttp2) {
  tcp::socket client = Connect();
  boost::asio::write(client, boost::asio::buffer("PRI", 3));
  ASSERT_TRUE(RunUntil(io_, [this] { return grpc_.size() == 1; }));
  const auto option = [fd = grpc_.front().native_handle()](int level, int name) {
    int value = -1;
    socklen_t size = sizeof(value);
    EXPECT_EQ(::getsockopt(fd, level, name, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 10);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPINTVL), 5);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPCNT), 3);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 25'000);
}

// "Of 24 scripts at a barrier eight could wait and the others were disconnected, without a word."
TEST_F(SharedPortTest, CallsMayWaitOverAQuarterAndMoreAreToldWhyNot) {
  Open({.fd_cap = 200});
  std::vector<tcp::socket> clients;
  std::vector<std::shared_ptr<void>> held;
  absl::Status refused;
  for (std::size_t i = 0; i < 51; ++i) {
    clients.push_back(Connect());
    boost::asio::write(clients.back(), boost::asio::buffer("PRI", 3));
    ASSERT_TRUE(RunUntil(io_, [&] { return grpc_.size() == i + 1; }));
    auto wait = port_->Wait({"127.0.0.1", clients.back().local_endpoint().port()});
    if (wait.ok()) held.push_back(*std::move(wait));
    refused = wait.status();
  }
  EXPECT_EQ(held.size(), 50u);
  EXPECT_EQ(refused, absl::ResourceExhaustedError(
                         "calls wait over 50 connections already, and the daemon can spare no more "
                         "file descriptors; raise `ulimit -n` where it runs"));
  for (tcp::socket& client : clients) EXPECT_FALSE(IsClosed(client));
}

TEST_F(SharedPortTest, DeathNoticeIsHandedOnUnread) {
  ServeStore();
  tcp::socket guard = Connect();
  boost::asio::write(guard, boost::asio::buffer("DEAD s\n", 7));
  guard.close();
  ASSERT_TRUE(RunUntil(io_, [this] { return notices_.size() == 1; }));
  EXPECT_EQ(ReadAll(notices_[0]), "DEAD s\n");
  EXPECT_TRUE(grpc_.empty() && store_.empty());
}

TEST_F(SharedPortTest, GarbageIsClosedAndCounted) {
  Open({.fd_cap = 200});
  ServeStore();
  const std::size_t files = OpenFiles();
  const std::vector<int> clients = Flood(500, "GET / HTTP/1.1\r\n\r\n");
  // SSLv2's hello, and a byte above all opcodes.
  const std::vector<int> others = Flood(500, "\x80\x2e\x01\x00");
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->stats().garbage == 1000; }));
  EXPECT_EQ(port_->stats(), (SharedPortStats{.accepted = 1000, .garbage = 1000}));
  EXPECT_TRUE(grpc_.empty() && store_.empty());
  Leave(clients);
  Leave(others);
  EXPECT_EQ(OpenFiles(), files);
  EXPECT_TRUE(AgentGetsIn());
}

// A client that uses TLS where it is not spoken, or lacks it where it is required, is told so in
// its own protocol, however much it has sent already, and gRPC never sees it.
TEST_F(SharedPortTest, WhoeverSpeaksTlsAtAPlainPortOrTheOtherWayAroundIsToldSo) {
  const std::string http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(100'000, '\0');
  const std::string tls = "\x16\x03\x01\x02" + std::string(100'000, '\0');
  for (const bool secure : {true, false}) {
    SCOPED_TRACE(secure ? "secure" : "plain");
    Open({.fd_cap = 200, .secure = secure});
    const std::vector<int> clients = Flood(1, secure ? http2 : tls);
    ASSERT_TRUE(RunUntil(io_, [this] { return port_->stats().wrong_door == 1; }));
    EXPECT_EQ(port_->stats(), (SharedPortStats{.accepted = 1, .wrong_door = 1}));
    std::string heard(1000, '\0');
    const ssize_t size = recv(clients[0], heard.data(), heard.size(), 0);
    ASSERT_GT(size, 0);
    heard.resize(static_cast<std::size_t>(size));
    EXPECT_EQ(heard, secure ? kTokenIsAskedFor : kNoTlsHere);
    Leave(clients);
    EXPECT_TRUE(grpc_.empty());

    const std::vector<int> others = Flood(1, secure ? tls : http2);
    ASSERT_TRUE(RunUntil(io_, [this] { return grpc_.size() == 1; }));
    EXPECT_EQ(port_->stats().wrong_door, 1U);
    Leave(others);
    grpc_.clear();
  }
}

// The first record names the authority, and comes in several segments if it has keys of
// post-quantum cryptography.
TEST_F(SharedPortTest, TlsIsHandedOnOnceItsFirstRecordIsWhole) {
  Open({.fd_cap = 200, .secure = true, .handshake_timeout = kSharedPortNever});
  const std::string record = std::string("\x16\x03\x01\x06\x00", 5) + std::string(0x600, 'x');
  const std::vector<int> clients = Flood(1, record.substr(0, 3));
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->silent() == 1; }));
  std::size_t sent = 3;
  for (const std::size_t more : {2u, 700u, 5u}) {
    ASSERT_EQ(send(clients[0], record.data() + sent, more, 0), static_cast<ssize_t>(more));
    sent += more;
    // The port waits for it, and does not poll meanwhile.
    EXPECT_LT(io_.run_for(std::chrono::milliseconds(50)), 10u);
    EXPECT_TRUE(grpc_.empty());
    EXPECT_EQ(port_->silent(), 1u);
  }
  ASSERT_GT(send(clients[0], record.data() + sent, record.size() - sent, 0), 0);
  ASSERT_TRUE(RunUntil(io_, [this] { return grpc_.size() == 1; }));
  Leave(clients);
}

TEST_F(SharedPortTest, WhoEndsInTheMiddleOfItsFirstRecordIsNotWaitedFor) {
  Open({.fd_cap = 200, .secure = true, .handshake_timeout = kSharedPortNever});
  const std::vector<int> clients = Flood(3, std::string("\x16\x03\x01\x06\x00 and", 9));
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->silent() == 3; }));
  Leave(clients);
  EXPECT_TRUE(RunUntil(io_, [this] { return port_->silent() == 0; }));
}

// A living daemon must not be taken for a dead one: probes get no answer.
TEST_F(SharedPortTest, LivenessProbeEndsInSilence) {
  Open({.handshake_timeout = kSharedPortNever});
  const std::vector<int> clients = Flood(10, FormatProbe("session", MakeProbeNonce()));
  ASSERT_TRUE(RunUntil(io_, [this] { return port_->stats().knocks == 10; }));
  EXPECT_EQ(port_->stats(), (SharedPortStats{.accepted = 10, .knocks = 10}));
  for (const int client : clients) {
    char heard = 0;
    EXPECT_LE(recv(client, &heard, 1, 0), 0);
  }
  Leave(clients);
}

TEST_F(SharedPortTest, FloodIsToldOnceAndItsSizeAtItsEnd) {
  Open({.fd_cap = 40,
        .handshake_timeout = kSharedPortNever,
        .flood_pause = std::chrono::seconds(1)});
  const std::vector<int> clients = Flood(110);
  ASSERT_TRUE(RunUntil(io_, [this] { return Logged("connections were refused in total") == 1; }));
  EXPECT_EQ(Logged("too many connections"), 1u);
  EXPECT_EQ(Logged("the first from 127.0.0.1"), 1u);
  EXPECT_EQ(Logged("100 connections were refused in total"), 1u);
  Leave(clients);
  const std::vector<int> again = Flood(20);
  ASSERT_TRUE(RunUntil(io_, [this] { return Logged("connections were refused in total") == 2; }));
  EXPECT_EQ(Logged("too many connections"), 2u);
  Leave(again);
}

}  // namespace
}  // namespace muster::rendezvous
