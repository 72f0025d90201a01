// Workers' connections through a tunnel: over real sockets and real TLS, with both ends and whoever
// plays worker and store on one loop.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "rendezvous/client/tunnel_client.h"
#include "rendezvous/fronts/tcpstore_server.h"
#include "rendezvous/fronts/tunnel_server.h"
#include "rendezvous/identity/token.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/listening_socket.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
using test::RunUntil;

const Token kToken = Token::Random();
const TunnelRound kRound{"job", {.incarnation = 7, .number = 3}};

// One end of a connection, which never blocks.
class Line {
 public:
  explicit Line(tcp::socket socket) : socket_(std::move(socket)) { socket_.non_blocking(true); }

  // How many bytes the kernel has taken.
  std::size_t Send(std::string_view bytes) {
    error_code error;
    return socket_.write_some(boost::asio::buffer(bytes.data(), bytes.size()), error);
  }
  void EndSending() { socket_.shutdown(tcp::socket::shutdown_send); }
  void Reset() {
    socket_.set_option(tcp::socket::linger(true, 0));
    socket_.close();
  }

  // What has come by now is added to `received`.
  void Read() {
    char bytes[64 << 10];
    while (!ended && !reset) {
      error_code error;
      const std::size_t count = socket_.read_some(boost::asio::buffer(bytes), error);
      received.append(bytes, count);
      if (error == boost::asio::error::would_block) return;
      if (error == boost::asio::error::eof) ended = true;
      if (error && !ended) reset = true;
    }
  }

  std::string received;
  bool ended = false;  // the other end says no more
  bool reset = false;

 private:
  tcp::socket socket_;
};

class TunnelTest : public ::testing::Test {
 protected:
  TunnelTest() : store_(io_, {boost::asio::ip::address_v4::loopback(), 0}) {
    store_.non_blocking(true);
    auto sockets = ListenAt(io_, {"127.0.0.1", 0});
    sockets_ = *std::move(sockets);
    port_ = PortOf(sockets_);
  }
  ~TunnelTest() override {
    client_.reset();
    server_.reset();
    io_.restart();
    io_.run();  // what gRPC still has to say
  }

  void Serve(const TunnelRound& round = kRound) {
    server_.emplace(io_, Credentials::FromToken(kToken, Role::kAgent));
    ASSERT_TRUE(server_->BeginRound(round, std::move(sockets_), store_.local_endpoint()).ok());
  }

  void Connect(const TunnelRound& round = kRound,
               const Credentials& credentials = Credentials::FromToken(kToken, Role::kAgent)) {
    client_.emplace(io_,
                    TunnelClientOptions{
                        .store = {"127.0.0.1", port_}, .credentials = credentials, .round = round});
    auto own = ListenAt(io_, {"127.0.0.1", 0});
    workers_port_ = PortOf(*own);
    ASSERT_TRUE(client_->Serve(own->front().release()).ok());
  }

  void Open() {
    Serve();
    Connect();
  }

  Line Worker() {
    tcp::socket socket(io_);
    socket.connect({boost::asio::ip::address_v4::loopback(), workers_port_});
    return Line(std::move(socket));
  }

  // The next connection to the store.
  std::optional<Line> AtStore() {
    std::optional<Line> line;
    EXPECT_TRUE(RunUntil(io_, [&] {
      error_code error;
      tcp::socket socket(io_);
      store_.accept(socket, error);
      if (!error) line.emplace(std::move(socket));
      return !error;
    }));
    return line;
  }

  [[nodiscard]] bool Hears(Line& line, std::string_view words) {
    return RunUntil(io_,
                    [&] {
                      line.Read();
                      return line.received.size() >= words.size();
                    }) &&
           line.received == words;
  }
  [[nodiscard]] bool IsReset(Line& line) {
    return RunUntil(io_, [&] {
      line.Read();
      return line.reset;
    });
  }
  // Either way: an end that has not heard anything yet may not be known as a connection.
  [[nodiscard]] bool IsGone(Line& line) {
    return RunUntil(io_, [&] {
      line.Read();
      return line.reset || line.ended;
    });
  }
  [[nodiscard]] bool HasEnded(Line& line) {
    return RunUntil(io_, [&] {
      line.Read();
      return line.ended;
    });
  }
  [[nodiscard]] bool NothingIsLeft() {
    return RunUntil(io_, [&] { return client_->connections() == 0 && server_->streams() == 0; });
  }

  boost::asio::io_context io_;
  tcp::acceptor store_;
  std::vector<tcp::acceptor> sockets_;
  std::uint16_t port_ = 0;
  std::uint16_t workers_port_ = 0;
  std::optional<TunnelServer> server_;
  std::optional<TunnelClient> client_;
};

TEST_F(TunnelTest, WorkersTalkToTheStoreAndBackAndEndInGoodOrder) {
  Open();
  Line worker = Worker();
  worker.Send("set");
  std::optional<Line> store = AtStore();
  EXPECT_TRUE(Hears(*store, "set"));
  store->Send("done");
  EXPECT_TRUE(Hears(worker, "done"));

  worker.EndSending();
  EXPECT_TRUE(HasEnded(*store));
  // It has ended its side, and still hears.
  store->Send(", and more");
  EXPECT_TRUE(Hears(worker, "done, and more"));
  store->EndSending();
  EXPECT_TRUE(HasEnded(worker));
  EXPECT_TRUE(NothingIsLeft());
  EXPECT_EQ(server_->refused(), 0u);
}

TEST_F(TunnelTest, StoreEndsItsSideFirst) {
  Open();
  Line worker = Worker();
  std::optional<Line> store = AtStore();
  store->EndSending();
  EXPECT_TRUE(HasEnded(worker));
  worker.Send("last");
  EXPECT_TRUE(Hears(*store, "last"));
  worker.EndSending();
  EXPECT_TRUE(HasEnded(*store));
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(TunnelTest, ResetAtOneEndIsAResetAtTheOther) {
  Open();
  Line killed = Worker();
  std::optional<Line> its = AtStore();
  killed.Send("x");
  EXPECT_TRUE(Hears(*its, "x"));
  killed.Reset();
  EXPECT_TRUE(IsReset(*its));

  Line worker = Worker();
  std::optional<Line> store = AtStore();
  worker.Send("x");
  EXPECT_TRUE(Hears(*store, "x"));
  store->Reset();
  EXPECT_TRUE(IsReset(worker));
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(TunnelTest, WorkerThatDoesNotReadHoldsUpTheStoreAndNobodyElse) {
  Open();
  Line slow = Worker();
  std::optional<Line> its = AtStore();
  // More than the kernels and gRPC keep between them.
  const std::string block(1 << 20, 'v');
  std::size_t sent = 0, before = 1;
  for (int quiet = 0; quiet < 50; before = sent) {
    sent += its->Send(block);
    quiet = sent == before ? quiet + 1 : 0;
    ASSERT_LT(sent, std::size_t{64} << 20) << "nothing holds the store up";
    ASSERT_TRUE(RunUntil(io_, [polls = 0]() mutable { return ++polls > 3; }));
  }

  Line other = Worker();
  std::optional<Line> others = AtStore();
  other.Send("get");
  EXPECT_TRUE(Hears(*others, "get"));
  others->Send(std::string(300'000, 'w'));
  EXPECT_TRUE(RunUntil(io_, [&] {
    other.Read();
    return other.received.size() == 300'000;
  }));

  // And once it does read, everything is there.
  EXPECT_TRUE(RunUntil(io_, [&] {
    slow.Read();
    return slow.received.size() == sent;
  }));
  EXPECT_EQ(std::count(slow.received.begin(), slow.received.end(), 'v'),
            static_cast<std::ptrdiff_t>(sent));
}

TEST_F(TunnelTest, StoreThatDoesNotReadHoldsUpTheWorker) {
  Open();
  Line worker = Worker();
  std::optional<Line> store = AtStore();
  const std::string block(1 << 20, 'v');
  std::size_t sent = 0, before = 1;
  for (int quiet = 0; quiet < 50; before = sent) {
    sent += worker.Send(block);
    quiet = sent == before ? quiet + 1 : 0;
    ASSERT_LT(sent, std::size_t{64} << 20) << "nothing holds the worker up";
    ASSERT_TRUE(RunUntil(io_, [polls = 0]() mutable { return ++polls > 3; }));
  }
  EXPECT_TRUE(RunUntil(io_, [&] {
    store->Read();
    return store->received.size() == sent;
  }));
  // A worker that dies while it is held up leaves nothing behind either.
  while (worker.Send(block) > 0) {
  }
  worker.Reset();
  EXPECT_TRUE(IsGone(*store));
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(TunnelTest, HundredsOfWorkersShareOneConnection) {
  Open();
  constexpr int kWorkers = 300;
  std::vector<Line> workers, stores;
  for (int i = 0; i < kWorkers; ++i) workers.push_back(Worker());
  for (int i = 0; i < kWorkers; ++i) stores.push_back(*AtStore());
  EXPECT_EQ(server_->streams(), static_cast<std::size_t>(kWorkers));
  for (int i = 0; i < kWorkers; ++i) workers[i].Send("worker " + std::to_string(i) + "\n");
  for (Line& store : stores) {
    EXPECT_TRUE(RunUntil(io_, [&] {
      store.Read();
      return store.received.ends_with('\n');
    }));
    store.Send(store.received);
  }
  for (int i = 0; i < kWorkers; ++i) {
    EXPECT_TRUE(Hears(workers[i], "worker " + std::to_string(i) + "\n"));
  }
  workers.clear();
  for (Line& store : stores) store.EndSending();
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(TunnelTest, WorkerThatComesBeforeTheRoundHasBegunAtTheStoreWaits) {
  Connect();
  Line worker = Worker();
  worker.Send("early");
  ASSERT_TRUE(RunUntil(io_, [polls = 0]() mutable { return ++polls > 50; }));
  Serve();
  std::optional<Line> store = AtStore();
  EXPECT_TRUE(Hears(*store, "early"));
}

TEST_F(TunnelTest, AllConnectionsEndWithTheirRound) {
  Open();
  Line worker = Worker();
  std::optional<Line> store = AtStore();
  server_->EndRound();
  EXPECT_TRUE(IsReset(worker));
  EXPECT_TRUE(IsGone(*store));
  EXPECT_TRUE(NothingIsLeft());
  tcp::socket stranger(io_);
  error_code error;
  stranger.connect({boost::asio::ip::address_v4::loopback(), port_}, error);
  EXPECT_EQ(error, boost::asio::error::connection_refused);

  // The next round has another port, and the same server.
  sockets_ = *ListenAt(io_, {"127.0.0.1", 0});
  port_ = PortOf(sockets_);
  const TunnelRound next{"job", {.incarnation = 7, .number = 4}};
  ASSERT_TRUE(server_->BeginRound(next, std::move(sockets_), store_.local_endpoint()).ok());
  Connect(next);
  Line again = Worker();
  std::optional<Line> its = AtStore();
  again.Send("again");
  EXPECT_TRUE(Hears(*its, "again"));
}

TEST_F(TunnelTest, EitherAgentEndsAndNothingOfItsTunnelIsLeft) {
  Open();
  Line worker = Worker();
  std::optional<Line> store = AtStore();
  client_.reset();
  EXPECT_TRUE(IsReset(worker));
  EXPECT_TRUE(IsGone(*store));
  EXPECT_TRUE(RunUntil(io_, [&] { return server_->streams() == 0; }));

  Connect();
  Line next = Worker();
  std::optional<Line> its = AtStore();
  server_.reset();
  EXPECT_TRUE(IsReset(next));
  EXPECT_TRUE(IsGone(*its));
}

TEST_F(TunnelTest, ItMayStopWhileItStops) {
  Open();
  Line worker = Worker();
  std::optional<Line> store = AtStore();
  int stopped = 0;
  server_->Stop([&] { ++stopped; });
  server_->Stop([&] { ++stopped; });
  EXPECT_TRUE(RunUntil(io_, [&] { return stopped == 2; }));
  EXPECT_TRUE(IsReset(worker));
  server_->Stop([&] { ++stopped; });
  EXPECT_TRUE(RunUntil(io_, [&] { return stopped == 3; }));
}

TEST_F(TunnelTest, OtherRoundsOtherLivesAndOtherJobsAreRefused) {
  Serve();
  std::uint64_t refused = 0;
  for (const TunnelRound& other :
       {TunnelRound{"job", {.incarnation = 7, .number = 2}},
        TunnelRound{"job", {.incarnation = 8, .number = 3}},
        TunnelRound{"another", {.incarnation = 7, .number = 3}}, TunnelRound{}}) {
    Connect(other);
    Line worker = Worker();
    worker.Send("x");
    EXPECT_TRUE(IsReset(worker)) << other.run_id;
    EXPECT_EQ(server_->refused(), ++refused);
  }
  error_code error;
  tcp::socket connection(io_);
  store_.accept(connection, error);
  EXPECT_EQ(error, boost::asio::error::would_block) << "somebody came through";
}

TEST_F(TunnelTest, ToolsAndHoldersOfAMetricsTokenAreRefused) {
  Serve();
  std::uint64_t refused = 0;
  for (const Credentials& credentials :
       {Credentials::FromToken(kToken, Role::kTool),
        Credentials::FromToken(kToken.ForMetrics(), Role::kAgent)}) {
    Connect(kRound, credentials);
    Line worker = Worker();
    EXPECT_TRUE(IsReset(worker));
    EXPECT_EQ(server_->refused(), ++refused);
  }
}

TEST_F(TunnelTest, WhoHasAnotherTokenOrNoneComesToNoCall) {
  Serve();
  for (const Credentials& credentials :
       {Credentials::FromToken(Token::Random(), Role::kAgent), Credentials::Plaintext()}) {
    Connect(kRound, credentials);
    Line worker = Worker();
    worker.Send("x");
    const std::uint64_t before = server_->refused();
    // With another token an agent gets as far as a handshake, which fails on its own side first; in
    // plain text it is told so.
    ASSERT_TRUE(RunUntil(io_, [polls = 0]() mutable { return ++polls > 200; }));
    EXPECT_EQ(server_->streams(), 0u);
    EXPECT_GE(server_->refused(), before);
    worker.Read();
    EXPECT_EQ(worker.received, "");
    client_.reset();
    EXPECT_TRUE(IsReset(worker)) << "a worker waits for ever";
  }
  error_code error;
  tcp::socket connection(io_);
  store_.accept(connection, error);
  EXPECT_EQ(error, boost::asio::error::would_block) << "somebody came through";
}

TEST_F(TunnelTest, BytesOfTheStoresOwnProtocolAreNotAnswered) {
  Serve();
  for (const std::string& bytes :
       {std::string("\3\5\0\0\0\0\0\0\0init/\1\0\0\0\0\0\0\0", 22), std::string("\0", 1),
        std::string("D"), std::string("K"), std::string(4096, '\x16'), std::string(4096, '\xff')}) {
    tcp::socket socket(io_);
    socket.connect({boost::asio::ip::address_v4::loopback(), port_});
    Line stranger(std::move(socket));
    stranger.Send(bytes);
    EXPECT_TRUE(IsGone(stranger));
    // At most an alert of TLS.
    EXPECT_LT(stranger.received.size(), 100u);
  }
  EXPECT_EQ(server_->streams(), 0u);
}

TEST_F(TunnelTest, StoreOfTorchServesWorkersOfBothNodes) {
  TcpStoreServer torch(io_, {.own_user_only = true});
  torch.AllowOnly({{"127.0.0.1"}});
  auto sockets = ListenAt(io_, {"127.0.0.1", 0});
  const std::uint16_t own = PortOf(*sockets);
  ASSERT_TRUE(torch.Serve(sockets->front().release()).ok());
  server_.emplace(io_, Credentials::FromToken(kToken, Role::kAgent));
  ASSERT_TRUE(
      server_
          ->BeginRound(kRound, std::move(sockets_), {boost::asio::ip::address_v4::loopback(), own})
          .ok());
  Connect();
  const std::string add("\3\5\0\0\0\0\0\0\0init/\1\0\0\0\0\0\0\0", 22);
  Line far = Worker();
  far.Send(add);
  EXPECT_TRUE(Hears(far, std::string("\1\0\0\0\0\0\0\0", 8)));
  tcp::socket socket(io_);
  socket.connect({boost::asio::ip::address_v4::loopback(), own});
  Line near(std::move(socket));
  near.Send(add);
  EXPECT_TRUE(Hears(near, std::string("\2\0\0\0\0\0\0\0", 8)));
  EXPECT_EQ(torch.refused(), 0u);
  torch.Reset();
  EXPECT_TRUE(IsGone(far));
  torch.Close();
}

}  // namespace
}  // namespace muster::rendezvous
