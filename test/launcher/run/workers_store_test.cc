// Which node serves the workers' store, where, and for whom.
#include "launcher/run/workers_store.h"

#include <sys/resource.h>

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/connect.hpp>
#include <boost/asio/write.hpp>

#include "launcher/machine/network.h"
#include "test/support/run_until.h"

namespace muster::launcher {
namespace {

using boost::asio::ip::tcp;
using test::RunUntil;

class WorkersStoreTest : public ::testing::Test {
 protected:
  static LaunchConfig Static(int nodes, int node_rank, std::uint16_t port) {
    LaunchConfig config;
    config.mode = nodes == 1 ? RendezvousMode::kFixedPort : RendezvousMode::kStatic;
    config.min_nodes = config.max_nodes = nodes;
    config.node_rank = node_rank;
    config.endpoint = {"127.0.0.1", port};
    return config;
  }

  static rendezvous::Assignment Round(int group_rank, bool agent_store = true) {
    rendezvous::Assignment assignment;
    assignment.group_rank = group_rank;
    assignment.agent_store = agent_store;
    return assignment;
  }

  // A worker that asks the store to add one to "init/", as PyTorch 1.13 does first of all.
  tcp::socket Ask(std::uint16_t port) {
    tcp::socket socket(io_);
    socket.connect({boost::asio::ip::address_v4::loopback(), port});
    static constexpr char kAdd[] = "\3\5\0\0\0\0\0\0\0init/\1\0\0\0\0\0\0\0";
    boost::asio::write(socket, boost::asio::buffer(kAdd, sizeof kAdd - 1));
    socket.non_blocking(true);
    return socket;
  }

  // What it is told: the number of those who have asked; 0 when the connection is closed, and
  // nothing is told within the deadline of RunUntil: -1.
  std::int64_t Answer(tcp::socket& socket) {
    std::int64_t answer = -1;
    boost::system::error_code error;
    const bool told = RunUntil(io_, [&] {
      if (socket.available(error) >= sizeof answer) {
        socket.read_some(boost::asio::buffer(&answer, sizeof answer), error);
        return true;
      }
      char byte;
      socket.receive(boost::asio::buffer(&byte, 1), tcp::socket::message_peek, error);
      if (error == boost::asio::error::would_block || !error) return false;
      answer = 0;
      return true;
    });
    return told ? answer : -1;
  }

  boost::asio::io_context io_;
};

TEST_F(WorkersStoreTest, EachRoundHasAStoreOfItsOwnOnAPortOfItsOwn) {
  WorkersStore store(io_, LaunchConfig{}, "127.0.0.1", nullptr);
  const auto first = store.Prepare();
  ASSERT_TRUE(first.ok()) << first.status();
  // A worker that is faster than we are waits in the kernel's queue.
  tcp::socket early = Ask(*first);
  ASSERT_TRUE(store.BeginRound(Round(0)).ok());
  EXPECT_EQ(Answer(early), 1);
  tcp::socket late = Ask(*first);
  EXPECT_EQ(Answer(late), 2);

  const auto second = store.Prepare();
  ASSERT_TRUE(second.ok());
  ASSERT_TRUE(store.BeginRound(Round(0)).ok());
  EXPECT_EQ(Answer(late), 0) << "the last round's workers are still heard";
  tcp::socket next = Ask(*second);
  EXPECT_EQ(Answer(next), 1) << "the last round's values are still there";
  store.Close([] {});
}

TEST_F(WorkersStoreTest, NodeThatDoesNotServeGivesItsPortBack) {
  WorkersStore store(io_, LaunchConfig{}, "127.0.0.1", nullptr);
  for (const rendezvous::Assignment& round : {Round(1), Round(0, /*agent_store=*/false)}) {
    const auto port = store.Prepare();
    ASSERT_TRUE(port.ok());
    ASSERT_TRUE(store.BeginRound(round).ok());
    tcp::socket socket(io_);
    boost::system::error_code error;
    socket.connect({boost::asio::ip::address_v4::loopback(), *port}, error);
    EXPECT_EQ(error, boost::asio::error::connection_refused);
  }
}

TEST_F(WorkersStoreTest, SingleNodeServesThePortThatTheUserChose) {
  WorkersStore probe(io_, LaunchConfig{}, "127.0.0.1", nullptr);
  const std::uint16_t port = *probe.Prepare();
  WorkersStore store(io_, Static(1, 0, port), "127.0.0.1", nullptr);
  const auto taken = store.Prepare();
  EXPECT_EQ(taken.status().message(),
            "cannot serve the workers' store: listen on 127.0.0.1:" + std::to_string(port) +
                ": Address already in use; choose another --master-port, or none at all to get a "
                "free one");
  probe.Close([] {});
  EXPECT_EQ(*store.Prepare(), port);
  EXPECT_EQ(*store.Prepare(), port) << "for the second round";
  store.Close([] {});
}

// It listened on every interface, even for a job that meets on loopback.
TEST_F(WorkersStoreTest, ItListensAtTheAddressThatTheOthersAreTold) {
  LaunchConfig config;
  config.mode = RendezvousMode::kEndpoint;
  config.endpoint = {"127.0.0.1", 29400};
  const auto reaches = [&](const std::string& told, const char* from) {
    WorkersStore store(io_, config, told, nullptr);
    const auto port = store.Prepare();
    EXPECT_TRUE(port.ok()) << port.status();
    tcp::socket socket(io_);
    boost::system::error_code error;
    socket.connect({boost::asio::ip::make_address(from), port.value_or(0)}, error);
    EXPECT_TRUE(!error || error == boost::asio::error::connection_refused) << error.message();
    return !error;
  };
  EXPECT_TRUE(reaches("127.0.0.1", "127.0.0.1"));
  EXPECT_FALSE(reaches("127.0.0.1", "127.0.0.2"));
  EXPECT_TRUE(reaches("127.0.1.1", "127.0.1.1"));
  EXPECT_FALSE(reaches("127.0.1.1", "127.0.0.1"));
  // Which interface a name or a router's address means is not known here.
  for (const char* told : {"localhost", "node0.example.org", "192.0.2.1"}) {
    EXPECT_TRUE(reaches(told, "127.0.0.1")) << told;
    EXPECT_TRUE(reaches(told, "127.0.0.2")) << told;
  }
  for (const std::string& own : InterfaceAddresses()) {
    if (own.find(':') != std::string::npos) continue;
    EXPECT_TRUE(reaches(own, own.c_str())) << own;
    EXPECT_FALSE(reaches(own, "127.0.0.1")) << own;
  }
}

TEST_F(WorkersStoreTest, StaticNodesShareTheOnePort) {
  rendezvous::Server server(io_);
  ASSERT_TRUE(server.Listen({"127.0.0.1", 0}, rendezvous::Credentials::Plaintext()).ok());
  WorkersStore store(io_, Static(2, 0, server.port()), "127.0.0.1", &server);
  EXPECT_EQ(*store.Prepare(), server.port());
  // Faster than our own Assignment: it is kept, and served in the round that it belongs to.
  tcp::socket early = Ask(server.port());
  // Of a worker that is gone again.
  Ask(server.port()).close();
  ASSERT_TRUE(RunUntil(io_, [&, polls = 0]() mutable { return ++polls > 50; }));
  ASSERT_TRUE(store.BeginRound(Round(0)).ok());
  EXPECT_EQ(Answer(early), 1);
  tcp::socket late = Ask(server.port());
  EXPECT_EQ(Answer(late), 2);

  ASSERT_TRUE(store.Prepare().ok());
  EXPECT_EQ(Answer(late), 0);
  store.Close([] {});

  WorkersStore other(io_, Static(2, 1, server.port()), "127.0.0.1", nullptr);
  EXPECT_EQ(*other.Prepare(), server.port()) << "where node rank 0 serves";
}

// "Somebody connected to the master port again and again before the job was together, and the agent
// ran out of file descriptors": each connection was kept until the round began.
TEST_F(WorkersStoreTest, EarlyConnectionsLeaveDescriptorsAndThoseThatHungUpGoFirst) {
  rlimit before = {};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few = {400, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  rendezvous::Server server(io_);
  ASSERT_TRUE(server.Listen({"127.0.0.1", 0}, rendezvous::Credentials::Plaintext()).ok());
  WorkersStore store(io_, Static(2, 0, server.port()), "127.0.0.1", &server);
  ASSERT_TRUE(store.Prepare().ok());

  std::vector<tcp::socket> clients;
  for (int i = 0; i < 110; ++i) clients.push_back(Ask(server.port()));
  // A quarter of the descriptors: those that came last find no room.
  EXPECT_EQ(Answer(clients.back()), 0);
  EXPECT_EQ(Answer(clients[100]), 0);
  for (int i = 40; i < 50; ++i) clients[i].close();
  std::vector<tcp::socket> late;
  for (int i = 0; i < 10; ++i) late.push_back(Ask(server.port()));
  tcp::socket too_many = Ask(server.port());
  EXPECT_EQ(Answer(too_many), 0);

  ASSERT_TRUE(store.BeginRound(Round(0)).ok());
  std::set<std::int64_t> answers;
  for (int i = 0; i < 100; ++i) {
    if (clients[i].is_open()) answers.insert(Answer(clients[i]));
  }
  for (tcp::socket& worker : late) answers.insert(Answer(worker));
  EXPECT_EQ(answers.size(), 100u);
  EXPECT_EQ(*answers.begin(), 1) << "somebody who had room was not served";
  store.Close([] {});
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(WorkersStoreTest, WorkerWithRankZeroFindsItsPortFree) {
  LaunchConfig config;
  config.worker_store = WorkerStore::kWorker;
  WorkersStore store(io_, config, "127.0.0.1", nullptr);
  const auto port = store.Prepare();
  ASSERT_TRUE(port.ok());
  ASSERT_TRUE(store.BeginRound(Round(0, /*agent_store=*/false)).ok());
  tcp::acceptor worker(io_, tcp::v4());
  worker.set_option(tcp::acceptor::reuse_address(true));
  worker.bind({tcp::v4(), *port});
  worker.listen();
}

}  // namespace
}  // namespace muster::launcher
