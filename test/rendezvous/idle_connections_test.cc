// A daemon with few descriptors, agents, and a client whose connections begin like gRPC's and then
// stay silent.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/write.hpp>

#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/net/process_descriptors.h"
#include "test/rendezvous/support/join_request.h"
#include "test/rendezvous/support/recording_listener.h"
#include "test/support/command.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using test::Command;
using test::RunUntil;

// Four times as many as the daemon has descriptors.
constexpr int kFlood = 1000;

struct Agent {
  RecordingListener heard;
  std::unique_ptr<RendezvousClient> client;
};

class IdleConnectionsTest : public testing::TestWithParam<const char*> {
 protected:
  IdleConnectionsTest()
      : daemon_({"sh", "-c",
                 "ulimit -n 256; exec \"$0\" --listen=127.0.0.1:0 --ready-fd=1 --insecure",
                 std::filesystem::absolute("rendezvous/musterd")}) {
    // The flood comes from this process.
    RaiseDescriptorLimit();
    std::signal(SIGPIPE, SIG_IGN);
    if (!daemon_.WaitForOut("\n")) std::abort();
    port_ = static_cast<std::uint16_t>(std::stoi(daemon_.out()));
  }

  // The agent of node `index` of two.
  std::unique_ptr<Agent> Join(int index) {
    auto agent = std::make_unique<Agent>();
    agent->client = MakeGrpcClient(
        io_, {.endpoint = {"127.0.0.1", port_}, .connect_timeout = std::chrono::seconds(10)},
        agent->heard);
    agent->client->Join(RequestFor(index, 2));
    return agent;
  }

  // HTTP/2's preface and settings (RFC 9113, 3.4), from that address of this machine.
  tcp::socket OpenIdle(const char* from) {
    static constexpr char kBeginning[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    tcp::socket socket(io_, tcp::v4());
    socket.bind({boost::asio::ip::make_address(from), 0});
    boost::system::error_code ignored;
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), port_}, ignored);
    boost::asio::write(socket, boost::asio::buffer(kBeginning, sizeof kBeginning - 1), ignored);
    return socket;
  }

  static bool IsClosed(tcp::socket& socket) {
    char bytes[256];
    boost::system::error_code error;
    socket.non_blocking(true);
    while (!error) socket.read_some(boost::asio::buffer(bytes), error);
    return error != boost::asio::error::would_block;
  }

  boost::asio::io_context io_;
  Command daemon_;
  std::uint16_t port_ = 0;
};

// "977 connections that said nothing kept our agent out, until the daemon was started again."
TEST_P(IdleConnectionsTest, KeepNoAgentOutAndCutNoneThatAttends) {
  const auto first = Join(1);
  ASSERT_TRUE(RunUntil(io_, [&] { return first->heard.Heard("welcome"); }))
      << testing::PrintToString(first->heard.log);
  std::vector<tcp::socket> flood;
  for (int i = 0; i < kFlood; ++i) flood.push_back(OpenIdle(GetParam()));

  const auto second = Join(2);
  const auto assigned = [](const Agent& agent) {
    return agent.heard.Last<Assignment>() != nullptr;
  };
  EXPECT_TRUE(RunUntil(
      io_, [&] { return (assigned(*first) && assigned(*second)) || second->heard.Heard("lost"); }));
  EXPECT_TRUE(assigned(*first)) << testing::PrintToString(first->heard.log);
  EXPECT_TRUE(assigned(*second)) << testing::PrintToString(second->heard.log);

  // Those that are left go by themselves; the agents stay.
  EXPECT_TRUE(RunUntil(io_, [&] { return std::all_of(flood.begin(), flood.end(), IsClosed); }));
  EXPECT_EQ(first->heard.Count("out of touch"), 0);
  EXPECT_EQ(second->heard.Count("out of touch"), 0);
}

INSTANTIATE_TEST_SUITE_P(From, IdleConnectionsTest, testing::Values("127.0.0.1", "127.0.0.2"),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "TheAgentsAddress"
                                                              : "AnotherAddress");
                         });

}  // namespace
}  // namespace muster::rendezvous
