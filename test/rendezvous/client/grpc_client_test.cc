// The client without a proper daemon: nothing listens, another program listens, silence,
// misbehaviour, and a keeper that answers for a dead daemon. attendance_test covers the client's
// decisions.
#include "rendezvous/client/rendezvous_client.h"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "absl/strings/str_cat.h"
#include "proto/rendezvous.grpc.pb.h"
#include "proto/store.grpc.pb.h"
#include "rendezvous/wire/liveness_probe.h"
#include "test/rendezvous/support/join_request.h"
#include "test/rendezvous/support/recording_listener.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using std::chrono::milliseconds;
using test::RunUntil;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A port of this machine that nobody listens on, and that nobody else is given meanwhile.
class ClosedPort {
 public:
  explicit ClosedPort(boost::asio::io_context& io) : socket_(io, tcp::v4()) {
    socket_.set_option(tcp::acceptor::reuse_address(true));
    socket_.bind({boost::asio::ip::address_v4::loopback(), 0});
  }
  std::uint16_t number() const { return socket_.local_endpoint().port(); }

 private:
  tcp::acceptor socket_;
};

// A TCP server that says `greeting` to whoever comes, and then waits.
class ForeignServer {
 public:
  ForeignServer(boost::asio::io_context& io, std::string greeting)
      : greeting_(std::move(greeting)),
        acceptor_(io, {boost::asio::ip::address_v4::loopback(), 0}) {
    Accept();
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  void Accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (error) return;
      guests_.push_back(std::move(socket));
      boost::system::error_code ignored;
      boost::asio::write(guests_.back(), boost::asio::buffer(greeting_), ignored);
      Accept();
    });
  }

  const std::string greeting_;
  tcp::acceptor acceptor_;
  std::vector<tcp::socket> guests_;
};

// Holds the port of a daemon that is dead, and answers those who probe.
class PortKeeper {
 public:
  PortKeeper(boost::asio::io_context& io, std::uint16_t port, const ProbeKey& key, ProbeWord word)
      : key_(key), word_(word), acceptor_(io) {
    acceptor_.open(tcp::v4());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind({boost::asio::ip::address_v4::loopback(), port});
    acceptor_.listen();
    Accept();
  }
  ~PortKeeper() {
    acceptor_.close();
    for (const auto& guest : guests_) guest->socket.close();
  }

 private:
  struct Guest {
    tcp::socket socket;
    std::string said;
  };

  void Accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (error) return;
      guests_.push_back(std::make_shared<Guest>(Guest{std::move(socket), {}}));
      Answer(guests_.back());
      Accept();
    });
  }

  void Answer(const std::shared_ptr<Guest>& guest) {
    boost::asio::async_read_until(
        guest->socket, boost::asio::dynamic_buffer(guest->said, kProbeSize), '\n',
        [guest, key = key_, word = word_](const boost::system::error_code&, std::size_t) {
          LivenessProbe probe;
          boost::system::error_code ignored;
          if (ParseProbe(guest->said, &probe) == ProbeState::kWhole) {
            const ProbeAnswer answer = AnswerProbe(key, probe, word);
            boost::asio::write(guest->socket, boost::asio::buffer(answer.view()), ignored);
          }
          guest->socket.close();
        });
  }

  const ProbeKey key_;
  const ProbeWord word_;
  tcp::acceptor acceptor_;
  std::vector<std::shared_ptr<Guest>> guests_;
};

class GrpcClientTest : public ::testing::Test {
 protected:
  ~GrpcClientTest() override {
    client_.reset();
    // Until gRPC has let go of every stream.
    io_.restart();
    io_.run();
  }

  void JoinAt(std::uint16_t port, milliseconds connect_timeout, bool trust_refusals = false) {
    client_ = MakeGrpcClient(io_,
                             {.endpoint = {"127.0.0.1", port},
                              .connect_timeout = connect_timeout,
                              .trust_refusals = trust_refusals},
                             heard_);
    client_->Join(RequestFor(1, 1));
    EXPECT_THAT(heard_.log, IsEmpty());
  }
  bool Hears(const std::string& start) {
    return RunUntil(io_, [&] { return heard_.Heard(start); });
  }

  boost::asio::io_context io_;
  RecordingListener heard_;
  std::unique_ptr<RendezvousClient> client_;
};

TEST_F(GrpcClientTest, ClosedPortIsTroubleOnceAndThenTheEnd) {
  const ClosedPort port(io_);
  JoinAt(port.number(), milliseconds(1000));
  ASSERT_TRUE(Hears("lost: "));
  EXPECT_THAT(
      heard_.log,
      ElementsAre(absl::StrCat("trouble: cannot reach the rendezvous at 127.0.0.1:", port.number(),
                               " yet: Connection refused; trying for 1 s"),
                  absl::StrCat("lost: cannot reach the rendezvous at 127.0.0.1:", port.number(),
                               " within 1 s: Connection refused")));
}

TEST_F(GrpcClientTest, HostThatDoesNotResolveIsTroubleOnceAndThenTheEnd) {
  client_ = MakeGrpcClient(
      io_, {.endpoint = {"no-such-host.invalid", 29400}, .connect_timeout = milliseconds(300)},
      heard_);
  client_->Join(RequestFor(1, 1));
  ASSERT_TRUE(Hears("lost: cannot reach the rendezvous at no-such-host.invalid:29400 within 300 "));
  EXPECT_LE(heard_.Count("trouble: "), 1);
}

TEST_F(GrpcClientTest, ServerThatSpeaksAnotherProtocolIsNoRendezvous) {
  const ForeignServer server(io_, "SSH-2.0-OpenSSH_9.2\r\n");
  JoinAt(server.port(), milliseconds(1000));
  ASSERT_TRUE(Hears("lost: "));
  EXPECT_THAT(heard_.log, ElementsAre(StartsWith("trouble: cannot reach the rendezvous at "),
                                      StartsWith("lost: cannot reach the rendezvous at ")));
}

TEST_F(GrpcClientTest, ServerThatSaysNothingIsGivenUp) {
  const ForeignServer server(io_, "");
  JoinAt(server.port(), milliseconds(300));
  ASSERT_TRUE(Hears("lost: cannot reach the rendezvous at "));
  EXPECT_LE(heard_.Count("trouble: "), 1);
  EXPECT_EQ(heard_.Count("lost: "), 1);
}

TEST_F(GrpcClientTest, GrpcServerWithoutARendezvousIsGivenUpAtOnce) {
  int port = 0;
  store::v1::Store::CallbackService another_service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&another_service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  // An hour: only giving up at once can end this test.
  JoinAt(static_cast<std::uint16_t>(port), std::chrono::hours(1));
  ASSERT_TRUE(Hears("lost: "));
  EXPECT_THAT(heard_.log, ElementsAre(StartsWith("lost: ")));
  EXPECT_THAT(heard_.log.back(), EndsWith("what answers there is not a Muster rendezvous"));
}

TEST_F(GrpcClientTest, LeaveEndsAVainAttempt) {
  const ClosedPort port(io_);
  JoinAt(port.number(), std::chrono::hours(1));
  ASSERT_TRUE(Hears("trouble: "));
  bool left = false;
  client_->Leave("interrupted by SIGTERM", [&] { left = true; });
  EXPECT_FALSE(left) << "it is told from the loop";
  ASSERT_TRUE(RunUntil(io_, [&] { return left; }));
  // Without an attempt, a pause or a timer the loop runs dry.
  io_.run();
  EXPECT_EQ(heard_.log.size(), 1u) << heard_.log.back();
}

// A daemon under a test's control: welcomes each agent and then counts what it says.
class FakeDaemon final : public v1::Rendezvous::CallbackService {
 public:
  FakeDaemon() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    port_ = static_cast<std::uint16_t>(port);
  }
  ~FakeDaemon() override {
    EndStream();
    server_->Shutdown();
  }

  std::uint16_t port() const { return port_; }
  void set_keep_alive(milliseconds keep_alive) { keep_alive_ms_ = keep_alive.count(); }
  int beats() const { return beats_; }
  bool agent_is_done() const { return agent_is_done_; }
  void set_lease(milliseconds lease) { lease_ms_ = lease.count(); }
  void set_durable() { durable_ = true; }
  // Nobody is welcomed or answered any more.
  void set_silent() { silent_ = true; }
  // What agents have said, beats left out.
  std::vector<v1::AgentEvent> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  v1::Directive MakeWelcome() const {
    v1::Directive welcome;
    welcome.mutable_welcome()->set_keep_alive_ms(keep_alive_ms_);
    welcome.mutable_welcome()->set_lease_ms(lease_ms_);
    welcome.mutable_welcome()->set_durable(durable_);
    return welcome;
  }
  // To the agent that came last.
  void Send(const v1::Directive& directive) { stream_.load()->Send(directive); }

  // Ends the stream, for which a good daemon does not wait so long.
  void EndStream() {
    if (Stream* stream = stream_.exchange(nullptr)) stream->Finish(grpc::Status::OK);
  }

 private:
  struct Stream final : grpc::ServerBidiReactor<v1::AgentEvent, v1::Directive> {
    explicit Stream(FakeDaemon& daemon) : daemon(daemon) {
      if (!daemon.silent_) Send(daemon.MakeWelcome());
      StartRead(&event);
    }
    // One after the other: the agent may have heard the last one before gRPC is done with it here.
    void Send(const v1::Directive& directive) {
      const std::lock_guard lock(writing);
      unsent.push_back(directive);
      if (unsent.size() == 1) StartWrite(&unsent.front());
    }
    void OnWriteDone(bool ok) override {
      const std::lock_guard lock(writing);
      unsent.pop_front();
      if (ok && !unsent.empty()) StartWrite(&unsent.front());
    }
    void OnReadDone(bool ok) override {
      if (!ok) {
        daemon.agent_is_done_ = true;
        return;
      }
      if (event.has_keep_alive()) {
        ++daemon.beats_;
      } else {
        const std::lock_guard lock(daemon.mutex_);
        daemon.events_.push_back(event);
      }
      StartRead(&event);
    }
    void OnCancel() override { daemon.EndStream(); }
    void OnDone() override { delete this; }

    FakeDaemon& daemon;
    v1::AgentEvent event;
    std::mutex writing;
    std::deque<v1::Directive> unsent;  // the first is gRPC's
  };

  grpc::ServerBidiReactor<v1::AgentEvent, v1::Directive>* Attend(
      grpc::CallbackServerContext*) override {
    auto* stream = new Stream(*this);  // deleted by OnDone
    stream_ = stream;
    return stream;
  }

  std::unique_ptr<grpc::Server> server_;
  std::uint16_t port_ = 0;
  // gRPC's threads and the test's.
  std::atomic<Stream*> stream_ = nullptr;
  std::atomic<std::int64_t> keep_alive_ms_ = 0;
  std::atomic<std::int64_t> lease_ms_ = 0;
  std::atomic<bool> silent_ = false;
  std::atomic<bool> durable_ = false;
  std::atomic<int> beats_ = 0;
  mutable std::mutex mutex_;
  std::vector<v1::AgentEvent> events_;
  std::atomic<bool> agent_is_done_ = false;
};

TEST_F(GrpcClientTest, BeatsComeAsOftenAsTheDaemonAsksFor) {
  FakeDaemon daemon;
  daemon.set_keep_alive(milliseconds(1));
  JoinAt(daemon.port(), std::chrono::hours(1));
  ASSERT_TRUE(RunUntil(io_, [&] { return daemon.beats() >= 20; }));
}

TEST_F(GrpcClientTest, DaemonThatAsksForNoBeatsGetsNone) {
  FakeDaemon daemon;
  JoinAt(daemon.port(), std::chrono::hours(1));
  ASSERT_TRUE(Hears("welcome"));
  bool left = false;
  client_->Leave("", [&] { left = true; });
  ASSERT_TRUE(RunUntil(io_, [&] { return daemon.agent_is_done(); }));
  EXPECT_EQ(daemon.beats(), 0);
  daemon.EndStream();
  ASSERT_TRUE(RunUntil(io_, [&] { return left; }));
}

TEST_F(GrpcClientTest, GoodbyeIsHeardWhenTheDaemonEndsTheStreamHoweverLongThatTakes) {
  FakeDaemon daemon;
  daemon.set_keep_alive(milliseconds(1));
  JoinAt(daemon.port(), std::chrono::hours(1));
  ASSERT_TRUE(RunUntil(io_, [&] { return daemon.beats() >= 1; }));
  bool left = false;
  client_->Leave("", [&] { left = true; });
  ASSERT_TRUE(RunUntil(io_, [&] { return daemon.agent_is_done(); }));
  // Many beats long.
  boost::asio::steady_timer timer(io_, milliseconds(50));
  bool over = false;
  timer.async_wait([&](const boost::system::error_code&) { over = true; });
  ASSERT_TRUE(RunUntil(io_, [&] { return over; }));
  EXPECT_FALSE(left) << "the daemon has not ended the stream";
  daemon.EndStream();
  ASSERT_TRUE(RunUntil(io_, [&] { return left; }));
  EXPECT_THAT(heard_.log, ElementsAre(StartsWith("welcome")));
}

TEST_F(GrpcClientTest, StreamThatEndsIsFollowedByAnotherOneWithTheSameSession) {
  FakeDaemon daemon;
  JoinAt(daemon.port(), std::chrono::hours(1));
  ASSERT_TRUE(Hears("welcome"));
  client_->Say(WorkersStarted{{.incarnation = 1, .number = 0}});
  ASSERT_TRUE(RunUntil(io_, [&] { return daemon.events().size() >= 2; }));
  daemon.EndStream();
  ASSERT_TRUE(Hears("back in touch"));
  ASSERT_TRUE(RunUntil(io_, [&] { return daemon.events().size() >= 5; }));
  EXPECT_THAT(heard_.log, ElementsAre(StartsWith("welcome"),
                                      absl::StrCat("out of touch: the connection to the rendezvous "
                                                   "at 127.0.0.1:",
                                                   daemon.port(), " broke: the connection ended"),
                                      "back in touch", StartsWith("welcome")));
  const std::vector<v1::AgentEvent> events = daemon.events();
  ASSERT_TRUE(events[2].has_resume());
  EXPECT_EQ(events[2].resume().session(), events[0].join().session());
  EXPECT_EQ(events[0].join().session().size(), 32u);
  EXPECT_EQ(events[0].join().connection(), 1u);
  EXPECT_EQ(events[2].resume().connection(), 2u);
  // What was said since the last Join is said again.
  v1::AgentEvent join = events[0];
  join.mutable_join()->set_connection(2);
  EXPECT_EQ(events[3].SerializeAsString(), join.SerializeAsString());
  EXPECT_EQ(events[4].SerializeAsString(), events[1].SerializeAsString());
}

TEST_F(GrpcClientTest, ConnectionOnWhichNothingIsAnsweredIsGivenUpAndTheWorkersTimeEnds) {
  FakeDaemon daemon;
  daemon.set_keep_alive(milliseconds(20));
  daemon.set_lease(milliseconds(200));
  JoinAt(daemon.port(), std::chrono::hours(1));
  ASSERT_TRUE(Hears("welcome"));
  const std::optional<TimePoint> deadline = heard_.last_deadline;
  ASSERT_TRUE(deadline.has_value());
  ASSERT_TRUE(Hears("out of touch: "));
  // It is welcomed again and again, which is an answer.
  ASSERT_TRUE(Hears("back in touch"));
  EXPECT_GT(heard_.last_deadline, deadline);
  daemon.set_silent();
  ASSERT_TRUE(Hears("fenced: nothing was heard from the rendezvous at "));
}

TEST_F(GrpcClientTest, WhoIsEvictedJoinsAnewWithAnotherSession) {
  FakeDaemon daemon;
  JoinAt(daemon.port(), std::chrono::hours(1));
  ASSERT_TRUE(Hears("welcome"));
  v1::Directive evicted;
  evicted.mutable_evicted()->set_sentence("gone");
  daemon.Send(evicted);
  ASSERT_TRUE(Hears("evicted: gone"));
  client_->Join(RequestFor(1, 1));
  ASSERT_TRUE(RunUntil(io_, [&] { return daemon.events().size() >= 2; }));
  const std::vector<v1::AgentEvent> events = daemon.events();
  ASSERT_TRUE(events[1].has_join());
  EXPECT_NE(events[1].join().session(), events[0].join().session());
}

TEST_F(GrpcClientTest, RefusedConnectionIsTheEndWhereNoLeaseRunsAndNothingIsRemembered) {
  auto daemon = std::make_unique<FakeDaemon>();
  JoinAt(daemon->port(), std::chrono::hours(1));
  ASSERT_TRUE(Hears("welcome"));
  const std::uint16_t port = daemon->port();
  daemon.reset();
  ASSERT_TRUE(Hears("lost: "));
  EXPECT_THAT(heard_.log.back(),
              StartsWith(absl::StrCat("lost: the rendezvous at 127.0.0.1:", port,
                                      " is gone: Connection refused; it kept the job in memory ")));
  bool left = false;
  client_->Leave("", [&] { left = true; });
  ASSERT_TRUE(RunUntil(io_, [&] { return left; }));
}

// Two halves of a job ran side by side: something before the daemon refused connections, and that
// was taken for the word of a daemon that remembers.
TEST_F(GrpcClientTest, RefusedConnectionsAreSilence) {
  auto daemon = std::make_unique<FakeDaemon>();
  daemon->set_lease(milliseconds(500));
  daemon->set_durable();
  JoinAt(daemon->port(), std::chrono::hours(1));
  ASSERT_TRUE(Hears("welcome"));
  daemon.reset();
  ASSERT_TRUE(Hears("fenced: nothing was heard from the rendezvous at "));
  EXPECT_EQ(heard_.Count("lost: "), 0) << "it will be back";
}

TEST_F(GrpcClientTest, RefusedConnectionsOfADaemonThatForgetsAreTheEndWhenTheLeaseIsOver) {
  auto daemon = std::make_unique<FakeDaemon>();
  daemon->set_lease(milliseconds(500));
  JoinAt(daemon->port(), std::chrono::hours(1));
  ASSERT_TRUE(Hears("welcome"));
  daemon.reset();
  ASSERT_TRUE(Hears("lost: "));
  EXPECT_THAT(heard_.log,
              ElementsAre(StartsWith("welcome"), StartsWith("out of touch: "),
                          StartsWith("fenced: "), HasSubstr("is gone: Connection refused; ")));
}

TEST_F(GrpcClientTest, TrustedRefusalIsTheEndAndLeavesTheWorkersTheirTime) {
  auto daemon = std::make_unique<FakeDaemon>();
  daemon->set_lease(std::chrono::minutes(1));
  JoinAt(daemon->port(), std::chrono::hours(1), true);
  ASSERT_TRUE(Hears("welcome"));
  ASSERT_TRUE(heard_.last_deadline.has_value());
  daemon.reset();
  ASSERT_TRUE(Hears("lost: "));
  EXPECT_EQ(heard_.last_deadline, std::nullopt);
  EXPECT_EQ(heard_.Count("fenced: "), 0);
}

class DeadDaemonTest : public GrpcClientTest {
 protected:
  // A daemon with a keeper welcomes the client, and dies. Returns its port.
  std::uint16_t KillADaemon(milliseconds lease, bool durable) {
    FakeDaemon daemon;
    daemon.set_lease(lease);
    if (durable) daemon.set_durable();
    JoinAt(daemon.port(), std::chrono::hours(1));
    EXPECT_TRUE(RunUntil(io_, [&] { return !daemon.events().empty(); }));
    v1::Directive welcome = daemon.MakeWelcome();
    welcome.mutable_welcome()->set_knock_secret(
        SecretFor(key_, daemon.events().front().join().session()));
    daemon.Send(welcome);
    EXPECT_TRUE(RunUntil(io_, [&] { return heard_.Count("welcome") == 2; }));
    return daemon.port();
  }

  const ProbeKey key_ = MakeKnockKey();
};

TEST_F(DeadDaemonTest, CostsNoWorkerForAsLongAsItsKeeperProvesThatNobodyDecides) {
  const std::uint16_t port = KillADaemon(milliseconds(500), true);
  auto keeper = std::make_unique<PortKeeper>(io_, port, key_, ProbeWord::kPaused);
  const TimePoint three_leases = *heard_.last_deadline + milliseconds(1500);
  ASSERT_TRUE(RunUntil(io_, [&] { return *heard_.last_deadline > three_leases; }));
  EXPECT_EQ(heard_.Count("fenced: "), 0);
  keeper.reset();
  ASSERT_TRUE(Hears("fenced: "));
}

TEST_F(DeadDaemonTest, IsNotBelievedInByTheWordOfAnotherKey) {
  const std::uint16_t port = KillADaemon(milliseconds(500), true);
  const PortKeeper liar(io_, port, MakeKnockKey(), ProbeWord::kPaused);
  ASSERT_TRUE(Hears("fenced: "));
}

// Workers with 30 s of grace were killed 1.7 s after the daemon had died.
TEST_F(DeadDaemonTest, LeavesTheWorkersTheirTimeWhenItRemembersNothing) {
  const std::uint16_t port = KillADaemon(std::chrono::minutes(1), false);
  ASSERT_TRUE(heard_.last_deadline.has_value());
  const PortKeeper keeper(io_, port, key_, ProbeWord::kGone);
  ASSERT_TRUE(Hears("lost: "));
  // The end of the run named neither the cause nor what to do about it.
  EXPECT_THAT(
      heard_.log.back(),
      EndsWith(
          " is gone: its process has died; it kept the job in memory only, so there is nothing to "
          "reconnect to (`musterd --state-dir=DIR` saves its jobs and survives this)"));
  EXPECT_EQ(heard_.last_deadline, std::nullopt);
  EXPECT_EQ(heard_.Count("fenced: "), 0);
}

TEST_F(GrpcClientTest, DaemonThatStartsLaterIsFound) {
  std::uint16_t number = 0;
  {
    const ClosedPort port(io_);
    number = port.number();
    JoinAt(number, std::chrono::hours(1));
    ASSERT_TRUE(Hears("trouble: "));
  }
  FakeDaemon daemon;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", number), grpc::InsecureServerCredentials());
  builder.RegisterService(&daemon);
  const std::unique_ptr<grpc::Server> late = builder.BuildAndStart();
  ASSERT_NE(late, nullptr);
  ASSERT_TRUE(Hears("welcome"));
  EXPECT_EQ(heard_.Count("trouble: "), 1);
  client_.reset();
  ASSERT_TRUE(RunUntil(io_, [&] { return daemon.agent_is_done(); }));
  late->Shutdown();
}

}  // namespace
}  // namespace muster::rendezvous
