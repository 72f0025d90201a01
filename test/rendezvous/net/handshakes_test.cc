// Which connections may start their handshakes, and when. The test takes gRPC's part: a started
// connection stays in `begun_` until it is shut down.
#include "rendezvous/net/handshakes.h"

#include <sys/socket.h>

#include <list>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using test::RunUntil;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HandshakesTest : public testing::Test {
 protected:
  struct Client {
    tcp::socket socket;
    std::uint16_t port;
  };

  // A client at that local address, whose connection is handed in.
  Client& Connect(const std::string& from, std::size_t most_waiting = 100,
                  std::size_t at_once = 100) {
    tcp::socket client(io_, tcp::v4());
    client.bind({boost::asio::ip::make_address(from), 0});
    client.connect({boost::asio::ip::make_address("127.0.0.1"), door_.local_endpoint().port()});
    const std::uint16_t port = client.local_endpoint().port();
    clients_.push_back({std::move(client), port});
    names_[port] = from.substr(from.rfind('.') + 1) + "#" + std::to_string(++numbers_[from]);
    dropped_ += handshakes_->Add(door_.accept(), {.at_once = at_once, .waiting = most_waiting});
    return clients_.back();
  }

  void Use(HandshakeLimits limits) {
    handshakes_.emplace(
        io_,
        [this](tcp::socket connection) {
          order_.push_back(names_.at(connection.remote_endpoint().port()));
          begun_.push_back(std::move(connection));
        },
        [this](const auto& host) { failed_.push_back(host.to_string()); }, limits);
  }

  // Those started since the last call, as "LAST NUMBER OF THE ADDRESS#INDEX".
  std::vector<std::string> Begun() { return std::exchange(order_, {}); }

  void Called(const Client& client) {
    handshakes_->Called({client.socket.local_endpoint().address().to_string(), client.port});
  }
  // As gRPC does when a handshake fails.
  void ShutDown(const std::string& name) {
    for (tcp::socket& connection : begun_) {
      boost::system::error_code error;
      const auto peer = connection.remote_endpoint(error);
      if (!error && names_.at(peer.port()) == name) connection.shutdown(tcp::socket::shutdown_both);
    }
  }

  boost::asio::io_context io_;
  tcp::acceptor door_{io_, {boost::asio::ip::make_address("127.0.0.1"), 0}};
  std::list<Client> clients_;
  std::map<std::uint16_t, std::string> names_;
  std::map<std::string, int> numbers_;
  std::list<tcp::socket> begun_;
  std::vector<std::string> order_;
  std::size_t dropped_ = 0;
  std::vector<std::string> failed_;
  std::optional<Handshakes> handshakes_;
};

constexpr std::chrono::hours kNever(1);

TEST_F(HandshakesTest, SoManyBeginAndACallMakesRoomForTheNext) {
  Use({.at_once = 2, .of_address = 2, .patience = kNever});
  Client& first = Connect("127.0.0.1");
  Connect("127.0.0.1");
  Connect("127.0.0.1");
  EXPECT_THAT(Begun(), ElementsAre("1#1", "1#2"));
  EXPECT_EQ(handshakes_->under_way(), 2u);
  EXPECT_EQ(handshakes_->waiting(), 1u);
  Called(first);
  EXPECT_THAT(Begun(), ElementsAre("1#3"));
  Called(first);
  EXPECT_THAT(Begun(), IsEmpty()) << "it was counted once";
  EXPECT_THAT(failed_, IsEmpty());
  EXPECT_EQ(handshakes_->under_way(), 2u);
}

TEST_F(HandshakesTest, OneThatFailsMakesRoomWithoutACall) {
  Use({.at_once = 1, .of_address = 1, .patience = kNever});
  Connect("127.0.0.1");
  Connect("127.0.0.1");
  EXPECT_THAT(Begun(), ElementsAre("1#1"));
  ShutDown("1#1");
  EXPECT_TRUE(RunUntil(io_, [&] { return !order_.empty(); }));
  EXPECT_THAT(Begun(), ElementsAre("1#2"));
  EXPECT_THAT(failed_, ElementsAre("127.0.0.1"));
}

// A host opened thousands of silent connections: nodes at other addresses could not join.
TEST_F(HandshakesTest, OneAddressHasAPartAndAddressesTakeTurns) {
  Use({.at_once = 3, .of_address = 2, .patience = kNever});
  for (int i = 0; i < 5; ++i) Connect("127.0.0.2");
  EXPECT_THAT(Begun(), ElementsAre("2#1", "2#2"));
  Connect("127.0.0.3");
  EXPECT_THAT(Begun(), ElementsAre("3#1"));
  for (int i = 0; i < 2; ++i) Connect("127.0.0.3");
  Connect("127.0.0.4");
  EXPECT_THAT(Begun(), IsEmpty());
  for (const char* name : {"2#1", "2#2", "3#1"}) {
    ShutDown(name);
    const std::size_t before = order_.size();
    EXPECT_TRUE(RunUntil(io_, [&] { return order_.size() > before; }));
  }
  // After 3 comes 4, then 2, then 3 again; for each the newest.
  EXPECT_THAT(Begun(), ElementsAre("4#1", "2#5", "3#3"));
}

TEST_F(HandshakesTest, OneThatTakesLongGivesWayWhenOthersWait) {
  Use({.at_once = 1, .of_address = 1, .patience = std::chrono::milliseconds(1)});
  Client& silent = Connect("127.0.0.1");
  Connect("127.0.0.2");
  EXPECT_TRUE(RunUntil(io_, [&] { return order_.size() == 2; }));
  EXPECT_EQ(handshakes_->slow(), 1u);
  char byte;
  boost::system::error_code error;
  silent.socket.read_some(boost::asio::buffer(&byte, 1), error);
  EXPECT_EQ(error, boost::asio::error::eof);
  EXPECT_EQ(handshakes_->under_way(), 1u) << "nobody waits, and this one has the time it needs";
  EXPECT_EQ(handshakes_->slow(), 1u);
}

// It would not help connections that wait for their own address, and would harm others.
TEST_F(HandshakesTest, OneOfAnotherAddressDoesNotGiveWayToThoseWhoWaitForTheirOwn) {
  Use({.at_once = 10, .of_address = 1, .patience = std::chrono::milliseconds(1)});
  Connect("127.0.0.2");
  Connect("127.0.0.1");
  Connect("127.0.0.1");
  EXPECT_THAT(Begun(), ElementsAre("2#1", "1#1"));
  EXPECT_TRUE(RunUntil(io_, [&] { return !order_.empty(); }));
  EXPECT_THAT(Begun(), ElementsAre("1#2"));
  EXPECT_EQ(handshakes_->slow(), 1u);
  EXPECT_EQ(handshakes_->under_way(), 2u);
}

TEST_F(HandshakesTest, WhoWaitsLongestIsTurnedAwayWhenThereIsNoRoomOfTheNewcomersAddressFirst) {
  Use({.at_once = 1, .of_address = 1, .patience = kNever});
  Client& busy = Connect("127.0.0.1", 2);
  Connect("127.0.0.2", 2);
  Connect("127.0.0.3", 2);
  Connect("127.0.0.3", 2);
  EXPECT_EQ(dropped_, 1u);
  EXPECT_EQ(handshakes_->waiting(), 2u);
  Connect("127.0.0.4", 1);
  EXPECT_EQ(dropped_, 3u) << "one of its own address, itself, and one that was too many before";
  EXPECT_EQ(handshakes_->waiting(), 1u);
  Begun();
  Called(busy);
  EXPECT_EQ(Begun().size(), 1u);
}

TEST_F(HandshakesTest, FewDescriptorsAllowFewer) {
  Use({.at_once = 10, .of_address = 10, .patience = kNever});
  for (int i = 0; i < 3; ++i) Connect("127.0.0.1", 100, 2);
  EXPECT_EQ(handshakes_->under_way(), 2u);
  Connect("127.0.0.1", 100, 0);
  EXPECT_EQ(handshakes_->under_way(), 2u);
  Connect("127.0.0.1", 100, 100);
  EXPECT_EQ(handshakes_->under_way(), 5u);
}

// `muster status` took half as long again while another host started one handshake after another.
TEST_F(HandshakesTest, AnAddressWhoseHandshakesFailWaitsBetweenThem) {
  Use({.at_once = 10,
       .of_address = 10,
       .patience = kNever,
       .failures_in_a_second = 1,
       .failures_at_once = 2});
  for (const char* name : {"1#1", "1#2"}) {
    Connect("127.0.0.1");
    EXPECT_THAT(Begun(), ElementsAre(name));
    failed_.clear();
    ShutDown(name);
    EXPECT_TRUE(RunUntil(io_, [&] { return !failed_.empty(); }));
  }
  Connect("127.0.0.1");
  EXPECT_THAT(Begun(), IsEmpty());
  Connect("127.0.0.2");
  EXPECT_THAT(Begun(), ElementsAre("2#1")) << "others do not wait";
  EXPECT_TRUE(RunUntil(io_, [&] { return !order_.empty(); }));
  EXPECT_THAT(Begun(), ElementsAre("1#3"));
}

TEST_F(HandshakesTest, WhoHasClosedItsConnectionMeanwhileIsPassedOver) {
  Use({.at_once = 1, .of_address = 1, .patience = kNever});
  Client& busy = Connect("127.0.0.1");
  Connect("127.0.0.2");
  Connect("127.0.0.2").socket.close();
  Begun();
  Called(busy);
  EXPECT_THAT(Begun(), ElementsAre("2#1"));
  EXPECT_EQ(handshakes_->waiting(), 0u);
  EXPECT_THAT(failed_, ElementsAre("127.0.0.2"));
}

// A flood of ten thousand must not cost more than its connections do.
TEST_F(HandshakesTest, ThousandsComeAndGo) {
  Use({.at_once = 8,
       .of_address = 4,
       .patience = std::chrono::milliseconds(1),
       .failures_in_a_second = 1'000'000,
       .failures_at_once = 1'000'000});
  for (int i = 0; i < 2000; ++i) {
    Connect("127.0.0." + std::to_string(1 + i % 7), 50);
    clients_.front().socket.close();
    clients_.pop_front();
    while (begun_.size() > 4) {
      boost::system::error_code ignored;
      begun_.front().shutdown(tcp::socket::shutdown_both, ignored);
      begun_.pop_front();
    }
    io_.poll();
  }
  EXPECT_TRUE(RunUntil(io_, [&] {
    while (!begun_.empty()) {
      boost::system::error_code ignored;
      begun_.front().shutdown(tcp::socket::shutdown_both, ignored);
      begun_.pop_front();
    }
    return handshakes_->under_way() == 0 && handshakes_->waiting() == 0;
  }));
}

}  // namespace
}  // namespace muster::rendezvous
