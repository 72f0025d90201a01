// What /healthz says, to those who ask and to those who do not.
#include "launcher/run/run_status.h"

#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "test/support/run_until.h"

namespace muster::launcher {
namespace {

using boost::asio::ip::tcp;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class HealthServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = HealthServer::Open(io_, {"127.0.0.1", 0});
    ASSERT_TRUE(server.ok()) << server.status().message();
    server_ = *std::move(server);
  }

  tcp::socket Connect() {
    tcp::socket socket(io_);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), server_->port()});
    socket.non_blocking(true);
    return socket;
  }

  // Reads what is there; true once the other end has closed.
  static bool ReadTo(tcp::socket& socket, std::string& text) {
    char bytes[512];
    for (;;) {
      boost::system::error_code error;
      const std::size_t got = socket.read_some(boost::asio::buffer(bytes), error);
      text.append(bytes, got);
      if (error == boost::asio::error::would_block) return false;
      if (error) return true;
    }
  }

  std::string AnswerTo(const std::string& request) {
    tcp::socket socket = Connect();
    socket.send(boost::asio::buffer(request));
    std::string answer;
    EXPECT_TRUE(test::RunUntil(io_, [&] { return ReadTo(socket, answer); })) << request;
    return answer;
  }

  static std::string Get(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: node0\r\n\r\n";
  }

  boost::asio::io_context io_;
  std::unique_ptr<HealthServer> server_;
};

TEST_F(HealthServerTest, AnAgentIsHealthyFromItsStartAndReadyWhileWorkersRun) {
  EXPECT_THAT(AnswerTo(Get("/healthz")), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(AnswerTo(Get("/healthz/ready")), StartsWith("HTTP/1.1 503 "));
  server_->ShowReady(true);
  EXPECT_THAT(AnswerTo(Get("/healthz/ready?verbose")), StartsWith("HTTP/1.1 200 OK\r\n"));
  server_->ShowReady(false);
  EXPECT_THAT(AnswerTo(Get("/healthz/ready")), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(AnswerTo(Get("/healthz")), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HealthServerTest, ItSaysNothingElse) {
  EXPECT_EQ(AnswerTo(Get("/healthz")),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
            "Content-Length: 3\r\n\r\nok\n");
  EXPECT_THAT(AnswerTo("HEAD /healthz HTTP/1.1\r\n\r\n"), EndsWith("Content-Length: 3\r\n\r\n"));
  EXPECT_THAT(AnswerTo(Get("/")), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(AnswerTo(Get("/healthz/../token")), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(AnswerTo("POST /healthz HTTP/1.1\r\nContent-Length: 0\r\n\r\n"),
              StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(AnswerTo("\x16\x03\x01 no HTTP\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(AnswerTo("GET / HTTP/1.1\r\nA: " + std::string(100'000, 'a') + "\r\n\r\n"),
              Not(HasSubstr("200")));
}

TEST_F(HealthServerTest, StrangersWhoSayNothingHoldUpNobody) {
  std::vector<tcp::socket> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(Connect());
  EXPECT_THAT(AnswerTo(Get("/healthz")), StartsWith("HTTP/1.1 200 OK\r\n"));
  int closed = 0;
  std::string nothing;
  for (tcp::socket& socket : idle) closed += ReadTo(socket, nothing) ? 1 : 0;
  EXPECT_EQ(closed, 37);
  EXPECT_EQ(nothing, "");
  // The rest have five seconds.
  EXPECT_TRUE(test::RunUntil(io_, [&] { return ReadTo(idle.back(), nothing); }));
}

TEST_F(HealthServerTest, ItMayEndWhileSomebodyAsks) {
  tcp::socket socket = Connect();
  socket.send(boost::asio::buffer(std::string("GET /hea")));
  for (int i = 0; i < 5; ++i) io_.poll_one();
  server_.reset();
  std::string nothing;
  EXPECT_TRUE(test::RunUntil(io_, [&] { return ReadTo(socket, nothing); }));
  EXPECT_EQ(nothing, "");
}

TEST_F(HealthServerTest, APortThatIsTakenIsSaidInOneSentence) {
  const auto other = HealthServer::Open(io_, {"127.0.0.1", server_->port()});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(std::string(other.status().message()),
              StartsWith("cannot serve /healthz: listen on 127.0.0.1:"));
}

// A host that connected without end took the kubelet's probes their answers, and the pod was ended.
TEST_F(HealthServerTest, OneHostsConnectionsMakeRoomForOneAnother) {
  tcp::socket probe(io_, {boost::asio::ip::make_address("127.0.0.2"), 0});
  probe.connect({boost::asio::ip::make_address("127.0.0.1"), server_->port()});
  probe.non_blocking(true);
  std::vector<tcp::socket> flood;
  for (int i = 0; i < 100; ++i) flood.push_back(Connect());
  std::string ignored;
  ASSERT_TRUE(test::RunUntil(io_, [&] { return ReadTo(flood.front(), ignored); }))
      << "it has made room";
  probe.send(boost::asio::buffer(Get("/healthz")));
  std::string answer;
  EXPECT_TRUE(test::RunUntil(io_, [&] { return ReadTo(probe, answer); }));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK"));
}

}  // namespace
}  // namespace muster::launcher
