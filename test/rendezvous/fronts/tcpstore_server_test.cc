// The server with real sockets: connections, limits, fairness. tcpstore_service_test tests the
// replies, tcpstore_codec_test how requests may be split.
#include "rendezvous/fronts/tcpstore_server.h"

#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "test/rendezvous/fronts/tcpstore_bytes.h"
#include "test/rendezvous/fronts/tcpstore_peer.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using test::RunUntil;

std::string Set(std::string_view key, std::string_view value) {
  return Op(opcode::kSet) + String(key) + String(value);
}
std::string Get(std::string_view key) {
  return Op(opcode::kGet) + String(key);
}
std::string Wait(const std::vector<std::string>& keys) {
  return Op(opcode::kWait) + Strings(keys);
}
std::string NumKeys() {
  return Op(opcode::kNumKeys);
}
std::string Ping() {
  return Op(opcode::kPing) + "ping";
}

// This process' memory, including large pieces that malloc() mapped separately.
std::size_t UsedMemory() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

class TcpStoreServerTest : public ::testing::Test {
 protected:
  void Start(const TcpStoreOptions& options = {}, bool v6 = false) {
    server_ = std::make_unique<TcpStoreServer>(io_, options);
    const LoopbackListener listener = ListenOnLoopback(v6);
    port_ = listener.port;
    ASSERT_TRUE(server_->Serve(listener.fd).ok());
  }

  // A connection of 2.2 or later that the server has accepted.
  StorePeer Connect() {
    StorePeer peer(io_, port_);
    EXPECT_TRUE(peer.Exchange(Hello() + Ping(), "ping"));
    return peer;
  }

  // Runs the loop until nothing is left to do at once. Returns how many handlers ran.
  std::size_t Poll() {
    io_.restart();
    return io_.poll();
  }

  bool Connections(std::size_t count) {
    return RunUntil(io_, [&] { return server_->connections() == count; });
  }

  boost::asio::io_context io_;
  std::unique_ptr<TcpStoreServer> server_;
  std::uint16_t port_ = 0;
};

TEST_F(TcpStoreServerTest, ThousandRequestsInOneWriteAreAnsweredInOrder) {
  Start();
  StorePeer client = Connect();
  std::string requests, replies;
  for (int i = 1; i <= 1000; ++i) {
    requests += Op(opcode::kAdd) + String("n") + Number(1) + Get("n");
    replies += Number(i) + String(absl::StrCat(i));
  }
  EXPECT_TRUE(client.Exchange(requests, replies));
}

// A rank that set a value of 64 MiB lost its connection, whereas PyTorch's own server without libuv
// accepts it.
TEST_F(TcpStoreServerTest, LargeValueComesAndGoes) {
  Start();
  StorePeer client = Connect();
  const std::string value(24 << 20, 'v');
  EXPECT_TRUE(client.Exchange(Set("k", value) + Get("k"), String(value)));
}

TEST_F(TcpStoreServerTest, WhatIsPromisedTakesNoMemoryBeforeItComes) {
  Start();
  std::vector<StorePeer> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(Connect());
  const std::size_t before = UsedMemory();
  for (StorePeer& client : clients) {
    client.Send(Op(opcode::kSet) + String("k") + Number(256 << 20) + "the beginning");
  }
  StorePeer other = Connect();
  EXPECT_TRUE(other.Exchange(Ping(), "ping"));
  Poll();
  EXPECT_LT(UsedMemory() - before, std::size_t{1} << 20);
  other.Send(Op(opcode::kSet) + String("k") + Number((256 << 20) + 1));
  EXPECT_TRUE(other.IsClosed());
}

// Each client that is about to read a value has its own copy.
TEST_F(TcpStoreServerTest, RepliesThatNobodyTakesKeepOthersWaitingRatherThanFillTheMemory) {
  TcpStoreOptions options;
  options.output_bytes = 2 << 20;
  Start(options);
  std::vector<StorePeer> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(Connect());
  const std::string value(8 << 20, 'v');
  ASSERT_TRUE(clients.front().Exchange(Set("large", value) + Ping(), "ping"));
  const std::size_t before = UsedMemory();
  for (StorePeer& client : clients) client.Send(Get("large"));
  while (Poll() > 0) {
  }
  EXPECT_LT(UsedMemory() - before, 2 * value.size());
  for (StorePeer& client : clients) EXPECT_EQ(client.Receive(value.size() + 8), String(value));
}

TEST_F(TcpStoreServerTest, FiveHundredWaitersAreAllToldOnce) {
  Start();
  std::vector<StorePeer> waiters;
  for (int i = 0; i < 500; ++i) {
    waiters.push_back(Connect());
    waiters.back().Send(Wait({"go"}) + Ping());
    ASSERT_EQ(waiters.back().Receive(4), "ping") << "the wait is parked";
  }
  StorePeer other = Connect();
  EXPECT_TRUE(other.Exchange(Set("go", "") + Ping(), "ping"));
  for (StorePeer& waiter : waiters) {
    ASSERT_EQ(waiter.Receive(1), kStopped);
    ASSERT_TRUE(waiter.Exchange(Ping(), "ping")) << "once only";
  }
}

TEST_F(TcpStoreServerTest, WaitForHundredThousandKeysIsAnswered) {
  Start();
  constexpr int kKeys = 100'000;
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back(absl::StrCat("/default_pg/0//cpu//0/", i));
  StorePeer waiter = Connect(), other = Connect();
  waiter.Send(Wait(keys) + Ping());
  ASSERT_EQ(waiter.Receive(4), "ping");
  std::string entries = Op(opcode::kMultiSet) + Number(kKeys);
  for (const std::string& key : keys) entries += String(key) + String("v");
  EXPECT_TRUE(other.Exchange(entries + NumKeys(), Number(kKeys)));
  EXPECT_EQ(waiter.Receive(1), kStopped);
  EXPECT_TRUE(waiter.Exchange(Wait(keys), kStopped));
}

TEST_F(TcpStoreServerTest, WaiterThatDisconnectsIsForgotten) {
  Start();
  StorePeer other = Connect();
  {
    StorePeer waiter = Connect();
    waiter.Send(Wait({"k"}));
    Poll();
  }
  ASSERT_TRUE(Connections(1));
  EXPECT_TRUE(other.Exchange(Set("k", "v") + Get("k"), String("v")));
}

TEST_F(TcpStoreServerTest, CancelMeetsTheWakingSet) {
  Start();
  StorePeer waiter = Connect(), other = Connect();
  for (int i = 0; i < 10; ++i) {
    const std::string key = absl::StrCat(i);
    waiter.Send(Wait({key}));
    Poll();
    // Both are ready when the server polls.
    other.Send(Set(key, ""));
    waiter.Send(Op(opcode::kCancelWait) + Ping());
    std::string reply = waiter.Receive(5);
    if (reply.front() == '\0') reply = reply.substr(1) + waiter.Receive(1);
    EXPECT_EQ(reply, kCancelled + "ping");
    ASSERT_TRUE(other.Exchange(Ping(), "ping"));
    EXPECT_TRUE(waiter.Exchange(Ping(), "ping")) << "no stray 00";
  }
}

TEST_F(TcpStoreServerTest, GarbageIsCutOffAndNobodyElseNotices) {
  Start();
  StorePeer other = Connect();
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), Hex("16 03 01 00 c8 01 00 00"),
        Hello() + Hello(), Hex("00 de ad be ef 0d 00 00 00"), Hello() + Op(19),
        Hello() + Op(opcode::kGet) + Raw(std::uint64_t{1} << 63),
        Hello() + Op(opcode::kGet) + Raw(~std::uint64_t{0}), Op(2) + Raw(std::uint64_t{1} << 60),
        Hello() + Op(opcode::kWait) + Raw(~std::uint64_t{0}),
        Hello() + Op(opcode::kSet) + String("k") + Raw((std::uint64_t{256} << 20) + 1)}) {
    StorePeer client(io_, port_);
    client.Send(garbage);
    EXPECT_TRUE(client.IsClosed()) << garbage;
  }
  EXPECT_TRUE(other.Exchange(Op(opcode::kAdd) + String("n") + Number(1), Number(1)));
  EXPECT_EQ(server_->connections(), 1u);
}

TEST_F(TcpStoreServerTest, RepliesToWhatCameBeforeAMistakeAreSent) {
  Start();
  StorePeer client = Connect();
  EXPECT_TRUE(client.Exchange(
      Set("k", "abc") + Get("k") + Op(opcode::kAdd) + String("k") + Number(1) + Ping(),
      String("abc")));
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(TcpStoreServerTest, FullStoreClosesTheWriterOnly) {
  TcpStoreOptions options;
  options.limits.total_bytes = 1000;
  Start(options);
  StorePeer writer = Connect(), reader = Connect();
  writer.Send(Set("k", std::string(900, 'v')) + Set("l", std::string(200, 'v')));
  EXPECT_TRUE(writer.IsClosed());
  EXPECT_TRUE(reader.Exchange(NumKeys(), Number(1)));
}

// 1.13's server reads with blocking calls: one torn request blocked all other clients.
TEST_F(TcpStoreServerTest, TornRequestsStopNobodyElse) {
  Start();
  std::vector<StorePeer> torn;
  for (const std::string& begin :
       {Hello().substr(0, 3), Op(3), Op(3) + String("init/"),
        Hello() + Op(opcode::kSet) + String("k") + Raw(std::uint64_t{1000}) + "half"}) {
    torn.emplace_back(io_, port_);
    torn.back().Send(begin);
  }
  StorePeer other = Connect();
  EXPECT_TRUE(other.Exchange(Set("k", "") + Wait({"k"}), kStopped));
  EXPECT_EQ(server_->connections(), 5u);
}

TEST_F(TcpStoreServerTest, IncompleteRequestsMayNotHoldMoreThanTheirShare) {
  TcpStoreOptions options;
  options.input_bytes = 4 << 20;
  Start(options);
  StorePeer other = Connect(), greedy = Connect();
  greedy.Send(Op(opcode::kSet) + String("k") + Raw(std::uint64_t{8} << 20) +
              std::string(6 << 20, 'v'));
  EXPECT_TRUE(greedy.IsClosed());
  EXPECT_TRUE(other.Exchange(NumKeys(), Number(0)));
}

// <= 2.0 opens a second connection per rank that is silent for the whole job.
TEST_F(TcpStoreServerTest, ThousandsOfIdleConnectionsCostLittle) {
  Start();
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::size_t count = std::min<std::size_t>(2000, (limit.rlim_cur - 100) / 2);
  std::vector<StorePeer> idle;
  idle.reserve(count);
  const std::size_t before = mallinfo2().uordblks;
  for (std::size_t i = 0; i < count; ++i) {
    idle.emplace_back(io_, port_);
    // Half of them are main connections, which have said something, once.
    if (i % 2 == 0) {
      ASSERT_TRUE(idle.back().Exchange(Op(6), Number(0)));
    }
  }
  ASSERT_TRUE(Connections(count));
  EXPECT_LT((mallinfo2().uordblks - before) / count, 4096u) << "bytes per connection";
  EXPECT_EQ(Poll(), 0u) << "nothing is done for them";
  StorePeer client = Connect();
  EXPECT_TRUE(client.Exchange(Set("k", "v") + Get("k"), String("v")));
}

// By order of events: how much of the flood has been processed when the ping is answered.
TEST_F(TcpStoreServerTest, PingIsAnsweredInTheMidstOfAFlood) {
  Start();
  StorePeer flood = Connect(), other = Connect();
  std::string requests;
  int keys = 0;
  for (; keys < 40'000; ++keys) requests += Set(absl::StrCat(keys), "0123456789abcdef");
  // As much as fits into the buffers without the server.
  const std::size_t queued = flood.SendSome(requests);
  const std::size_t queued_requests = keys * queued / requests.size();
  ASSERT_GT(queued_requests, 10'000u);
  ASSERT_EQ(other.SendSome(Ping() + NumKeys()), 6u);
  EXPECT_EQ(other.Receive(4), "ping");
  const std::string served = other.Receive(8);
  EXPECT_LT(*reinterpret_cast<const std::int64_t*>(served.data()),
            static_cast<std::int64_t>(queued_requests / 2));
  flood.Send(requests.substr(queued));
  EXPECT_TRUE(flood.Exchange(NumKeys(), Number(keys))) << "and none was lost";
}

TEST_F(TcpStoreServerTest, ClientThatDoesNotReadIsNotReadFrom) {
  Start();
  StorePeer slow = Connect(), other = Connect();
  const std::string value(1 << 20, 'v');
  ASSERT_TRUE(other.Exchange(Set("large", value) + Ping(), "ping"));
  std::string requests, replies;
  for (int i = 0; i < 50; ++i) {
    requests += Get("large");
    replies += String(value);
  }
  slow.Send(requests + Set("done", ""));
  while (Poll() > 0) {
  }
  const std::string check = Op(opcode::kCheck) + Strings({"done"});
  EXPECT_TRUE(other.Exchange(check, Op(1))) << "its replies wait, and so do its requests";
  EXPECT_EQ(slow.Receive(replies.size()), replies);
  EXPECT_TRUE(slow.Exchange(Ping(), "ping"));
  EXPECT_TRUE(other.Exchange(check, Op(0)));
}

TEST_F(TcpStoreServerTest, WatcherThatNeverReadsIsGivenUp) {
  TcpStoreOptions options;
  options.output_limit_bytes = options.output_pause_bytes = 0;
  options.limits.value_bytes = 1 << 20;
  Start(options);
  StorePeer watcher(io_, port_), writer = Connect();
  EXPECT_TRUE(watcher.Exchange(Op(7) + String("k"), Op(3)));
  const std::string value(1 << 20, 'v');
  EXPECT_TRUE(RunUntil(io_, [&] {
    EXPECT_TRUE(writer.Exchange(Set("k", value) + Ping(), "ping"));
    return server_->connections() == 1;
  }));
}

TEST_F(TcpStoreServerTest, ClientThatEndsSendingStillGetsItsReplies) {
  Start();
  StorePeer client = Connect();
  const std::string value(8 << 20, 'v');
  client.Send(Set("k", value) + Get("k"));
  client.EndSending();
  EXPECT_EQ(client.Receive(value.size() + 8), String(value));
  EXPECT_TRUE(client.IsClosed());
  EXPECT_TRUE(Connections(0));
}

TEST_F(TcpStoreServerTest, StrangersAreTurnedAway) {
  Start();
  StorePeer early = Connect();
  server_->AllowOnly({{"192.0.2.7", "2001:db8::1"}});
  EXPECT_TRUE(early.IsClosed());
  EXPECT_EQ(server_->refused(), 0u) << "it had been allowed";
  StorePeer stranger(io_, port_);
  EXPECT_TRUE(stranger.IsClosed());
  EXPECT_EQ(server_->refused(), 1u);
  EXPECT_EQ(server_->connections(), 0u);

  server_->AllowOnly({{"::ffff:127.0.0.1"}});
  StorePeer friendly = Connect();
  server_->AllowOnly({{"127.0.0.1", "192.0.2.7"}});
  EXPECT_TRUE(friendly.Exchange(Ping(), "ping")) << "whoever stays allowed stays";
  server_->AllowOnly(std::nullopt);
  Connect();
  EXPECT_EQ(server_->refused(), 1u);
}

TEST_F(TcpStoreServerTest, Ipv4ClientOfAnIpv6SocketIsKnownByItsIpv4Address) {
  Start({}, true);
  server_->AllowOnly({{"127.0.0.1"}});
  StorePeer mapped = Connect();
  EXPECT_TRUE(mapped.Exchange(Ping(), "ping"));
  StorePeer v6(io_, port_, true);
  EXPECT_TRUE(v6.IsClosed());
  server_->AllowOnly({{"::1"}});
  EXPECT_TRUE(mapped.IsClosed());
  StorePeer allowed(io_, port_, true);
  EXPECT_TRUE(allowed.Exchange(Hello() + Ping(), "ping"));
}

TEST_F(TcpStoreServerTest, ResetLeavesNothingOfTheLastRound) {
  Start();
  StorePeer old = Connect(), waiter = Connect();
  old.Send(Set("/exception_dump", "x") + Op(opcode::kQueuePush) + String("q") + String("x"));
  waiter.Send(Wait({"k"}));
  ASSERT_TRUE(old.Exchange(Ping(), "ping"));
  server_->Reset();
  EXPECT_EQ(server_->connections(), 0u);
  EXPECT_TRUE(old.IsClosed());
  EXPECT_TRUE(waiter.IsClosed());
  StorePeer next = Connect();
  EXPECT_TRUE(next.Exchange(NumKeys() + Op(opcode::kCheck) + Strings({"q"}), Number(0) + Op(1)));
  EXPECT_TRUE(next.Exchange(Set("k", "v") + Wait({"k"}), kStopped));
}

TEST_F(TcpStoreServerTest, CloseEndsEverything) {
  Start();
  StorePeer client = Connect();
  server_->Close();
  EXPECT_TRUE(client.IsClosed());
  EXPECT_EQ(server_->connections(), 0u);
  Poll();
  EXPECT_TRUE(io_.stopped()) << "nothing is waited for any more";
}

TEST_F(TcpStoreServerTest, ServerMayGoWhileConnectionsAreBusy) {
  Start();
  StorePeer client = Connect(), waiting = Connect();
  waiting.Send(Op(8));
  client.Send(Set("k", std::string(1 << 20, 'v')) + Get("k"));
  server_.reset();
  Poll();
  EXPECT_TRUE(client.IsClosed());
}

TEST_F(TcpStoreServerTest, OneConnectionTooManyWaitsForAnotherToEnd) {
  TcpStoreOptions options;
  options.connections = 2;
  Start(options);
  auto first = std::make_unique<StorePeer>(Connect());
  StorePeer second = Connect();
  StorePeer third(io_, port_);
  third.Send(Hello() + Ping());
  Poll();
  EXPECT_TRUE(second.Exchange(Ping(), "ping"));
  EXPECT_EQ(server_->connections(), 2u);
  EXPECT_EQ(Poll(), 0u) << "it is not asked for again and again";
  first.reset();
  EXPECT_EQ(third.Receive(4), "ping");
  EXPECT_EQ(server_->refused(), 0u);
}

// Accepting without a free descriptor fails at once, again and again, at 100 % of a CPU.
TEST_F(TcpStoreServerTest, WithoutFileDescriptorsItWaitsAndDoesNotSpin) {
  Start();
  auto first = std::make_unique<StorePeer>(Connect());
  StorePeer second(io_, port_);
  second.Send(Hello() + Ping());
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int lowest_free = dup(0);
  close(lowest_free);
  const rlimit none_left{static_cast<rlim_t>(lowest_free), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  Poll();
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_EQ(Poll(), 0u);
  first.reset();  // both ends free their descriptors
  EXPECT_EQ(second.Receive(4), "ping");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_F(TcpStoreServerTest, ConnectionThatSomebodyElseAcceptedIsServed) {
  TcpStoreOptions options;
  options.connections = 1;
  server_ = std::make_unique<TcpStoreServer>(io_, options);
  const LoopbackListener listener = ListenOnLoopback();
  tcp::acceptor acceptor(io_, tcp::v4(), listener.fd);
  StorePeer client(io_, listener.port);
  tcp::socket accepted = acceptor.accept();
  const int copy = dup(accepted.native_handle());
  server_->Adopt(std::move(accepted));
  EXPECT_TRUE(client.Exchange(Hello() + Ping(), "ping"));

  // A dead host is detected, and small replies are not delayed.
  const auto option = [copy](int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(getsockopt(copy, level, name, &value, &size), 0);
    return value;
  };
  EXPECT_NE(option(SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_NE(option(IPPROTO_TCP, TCP_NODELAY), 0);
  EXPECT_GT(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
  close(copy);

  StorePeer one_too_many(io_, listener.port);
  server_->Adopt(acceptor.accept());
  EXPECT_TRUE(one_too_many.IsClosed());
  server_->Close();
  server_->AllowOnly({{"192.0.2.7"}});
  StorePeer stranger(io_, listener.port);
  server_->Adopt(acceptor.accept());
  EXPECT_TRUE(stranger.IsClosed());
  EXPECT_EQ(server_->refused(), 2u);
}

TEST_F(TcpStoreServerTest, OnlySocketsThatListenCanBeServed) {
  TcpStoreServer server(io_);
  EXPECT_EQ(server.Serve(open("/dev/null", O_RDONLY)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server.Serve(-1).code(), absl::StatusCode::kInvalidArgument);
  const int silent = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(server.Serve(silent).message(), absl::StrCat("serve the store on file descriptor ",
                                                         silent, ": the socket does not listen"));
  EXPECT_EQ(fcntl(silent, F_GETFD), -1) << "it was taken over, so it is closed";
}

TEST_F(TcpStoreServerTest, ServerListensOnSeveralSocketsAndAgainAfterClose) {
  Start();
  const LoopbackListener other = ListenOnLoopback();
  ASSERT_TRUE(server_->Serve(other.fd).ok());
  StorePeer one = Connect();
  ASSERT_TRUE(one.Exchange(Set("k", "v") + Ping(), "ping"));
  StorePeer two(io_, other.port);
  EXPECT_TRUE(two.Exchange(Hello() + Wait({"k"}), kStopped));
  server_->Close();
  const LoopbackListener third = ListenOnLoopback();
  ASSERT_TRUE(server_->Serve(third.fd).ok());
  StorePeer three(io_, third.port);
  EXPECT_TRUE(three.Exchange(Hello() + Ping(), "ping"));
}

}  // namespace
}  // namespace muster::rendezvous
