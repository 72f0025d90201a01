// Which connections are closed to make room for others: those without an attending agent, and which
// of these first.
#include "rendezvous/net/grpc_connections.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

class GrpcConnectionsTest : public testing::Test {
 protected:
  // Both ends of a connection.
  struct Link {
    tcp::socket ours;
    tcp::socket theirs;

    Peer peer() const {
      return {theirs.local_endpoint().address().to_string(), theirs.local_endpoint().port()};
    }
    bool IsShutDown() {
      char byte;
      boost::system::error_code error;
      theirs.non_blocking(true);
      theirs.read_some(boost::asio::buffer(&byte, 1), error);
      return error == boost::asio::error::eof;
    }
  };

  explicit GrpcConnectionsTest(tcp protocol = tcp::v4())
      : acceptor_(io_, tcp::endpoint(protocol, 0)) {}

  std::unique_ptr<Link> Connect(const char* from = "127.0.0.1") {
    tcp::socket theirs(io_, tcp::v4());
    theirs.bind({boost::asio::ip::make_address(from), 0});
    theirs.connect({boost::asio::ip::make_address("127.0.0.1"), acceptor_.local_endpoint().port()});
    return std::make_unique<Link>(Link{acceptor_.accept(), std::move(theirs)});
  }

  std::size_t Add(Link& link, std::size_t most) {
    return connections_.Add(link.ours.native_handle(), link.ours.remote_endpoint(), most);
  }

  boost::asio::io_context io_;
  tcp::acceptor acceptor_;
  GrpcConnections connections_;
};

TEST_F(GrpcConnectionsTest, OldestOfTheNewcomersAddressGoes) {
  const auto other = Connect("127.0.0.2");
  const auto first = Connect();
  const auto second = Connect();
  const auto third = Connect();
  EXPECT_EQ(Add(*other, 3), 0u);
  EXPECT_EQ(Add(*first, 3), 0u);
  EXPECT_EQ(Add(*second, 3), 0u);
  EXPECT_EQ(Add(*third, 3), 1u);
  EXPECT_FALSE(other->IsShutDown());
  EXPECT_TRUE(first->IsShutDown());
  EXPECT_FALSE(second->IsShutDown());
  EXPECT_EQ(connections_.idle(), 3u);
}

TEST_F(GrpcConnectionsTest, OldestOfAllGoesForAnAddressThatHasNoOther) {
  const auto first = Connect();
  const auto second = Connect();
  const auto newcomer = Connect("127.0.0.2");
  Add(*first, 2);
  Add(*second, 2);
  EXPECT_EQ(Add(*newcomer, 2), 1u);
  EXPECT_TRUE(first->IsShutDown());
  EXPECT_FALSE(second->IsShutDown());
  EXPECT_FALSE(newcomer->IsShutDown());
}

TEST_F(GrpcConnectionsTest, OneOverWhichAnAgentAttendsStaysAndIsTheNewestWhenThatEnds) {
  const auto agent = Connect();
  const auto idle = Connect();
  const auto third = Connect();
  Add(*agent, 1);
  std::shared_ptr<void> agent_session = connections_.Attend(agent->peer());
  ASSERT_NE(agent_session, nullptr);
  std::shared_ptr<void> another = connections_.Attend(agent->peer());
  Add(*idle, 1);
  EXPECT_EQ(Add(*third, 1), 1u);
  EXPECT_FALSE(agent->IsShutDown());
  EXPECT_TRUE(idle->IsShutDown());

  agent_session.reset();
  EXPECT_EQ(connections_.idle(), 1u) << "another agent shares it";
  another.reset();
  EXPECT_EQ(connections_.idle(), 2u);
  const auto newcomer = Connect();
  EXPECT_EQ(Add(*newcomer, 2), 1u);
  EXPECT_TRUE(third->IsShutDown());
  EXPECT_FALSE(agent->IsShutDown());
}

// "Of 24 scripts at a barrier each newcomer disconnected another one, so it never opened."
TEST_F(GrpcConnectionsTest, OneOverWhichACallWaitsStays) {
  const auto waits = Connect();
  const auto idle = Connect();
  const auto newcomer = Connect();
  Add(*waits, 2);
  auto held = connections_.Wait(waits->peer(), 1);
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(connections_.waiting(), 1u);
  EXPECT_EQ(connections_.idle(), 0u);
  Add(*idle, 1);
  EXPECT_EQ(Add(*newcomer, 1), 1u);
  EXPECT_FALSE(waits->IsShutDown());
  EXPECT_TRUE(idle->IsShutDown());
  held.reset();
  EXPECT_EQ(connections_.waiting(), 0u);
  EXPECT_EQ(connections_.idle(), 2u);
}

TEST_F(GrpcConnectionsTest, CallsWaitOverSoManyConnectionsAndNoMore) {
  const auto first = Connect();
  const auto second = Connect();
  Add(*first, 2);
  Add(*second, 2);
  auto held = connections_.Wait(first->peer(), 1);
  ASSERT_TRUE(held.has_value());
  EXPECT_TRUE(connections_.Wait(first->peer(), 1).has_value()) << "it is counted already";
  EXPECT_FALSE(connections_.Wait(second->peer(), 1).has_value());
  held.reset();
  EXPECT_TRUE(connections_.Wait(second->peer(), 1).has_value());
}

TEST_F(GrpcConnectionsTest, DescriptorOfOneThatHasEndedIsNotTakenForIt) {
  const auto ended = Connect();
  const auto next = Connect();
  const auto stranger = Connect();
  const auto last = Connect();
  const int fd = ended->ours.native_handle();
  Add(*ended, 4);
  std::shared_ptr<void> agent_session = connections_.Attend(ended->peer());
  // It ends, and the next one gets its descriptor.
  ASSERT_EQ(::dup2(next->ours.native_handle(), fd), fd);
  connections_.Add(fd, next->ours.remote_endpoint(), 4);
  EXPECT_EQ(connections_.idle(), 1u);
  agent_session.reset();
  EXPECT_EQ(connections_.idle(), 1u);

  // That one ends, too, and we do not know yet who has the descriptor now.
  ASSERT_EQ(::dup2(stranger->ours.native_handle(), fd), fd);
  EXPECT_EQ(Add(*last, 1), 1u);
  EXPECT_FALSE(stranger->IsShutDown());
}

TEST_F(GrpcConnectionsTest, NobodyAttendsOverWhatIsNotKnown) {
  EXPECT_EQ(connections_.Attend({"10.0.0.1", 7}), nullptr);
  EXPECT_EQ(connections_.Attend({"", 0}), nullptr);
}

TEST_F(GrpcConnectionsTest, AgentSessionMayOutliveTheTable) {
  const auto link = Connect();
  auto table = std::make_unique<GrpcConnections>();
  table->Add(link->ours.native_handle(), link->ours.remote_endpoint(), 1);
  const std::shared_ptr<void> agent_session = table->Attend(link->peer());
  ASSERT_NE(agent_session, nullptr);
  table.reset();
}

// One socket for both families, as for --listen=0.0.0.0.
class DualStackTest : public GrpcConnectionsTest {
 protected:
  DualStackTest() : GrpcConnectionsTest(tcp::v6()) {}
};

TEST_F(DualStackTest, AgentIsFoundByItsAddressAsGrpcNamesIt) {
  const auto link = Connect();
  ASSERT_TRUE(link->ours.remote_endpoint().address().is_v6());
  Add(*link, 1);
  EXPECT_NE(connections_.Attend(link->peer()), nullptr);
  EXPECT_EQ(Add(*Connect(), 1), 1u);
  EXPECT_TRUE(link->IsShutDown());
}

}  // namespace
}  // namespace muster::rendezvous
