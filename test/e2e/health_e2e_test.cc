// An agent's health over HTTP.
#include <csignal>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

using boost::asio::ip::tcp;

class HealthE2eTest : public E2eTest {
 protected:
  // The status of the response for a path; empty if there is none.
  static std::string Ask(const std::string& port, const std::string& path) {
    boost::asio::io_context io;
    tcp::socket socket(io);
    boost::system::error_code error;
    socket.connect(
        {boost::asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(std::stoi(port))},
        error);
    if (error) return "";
    boost::asio::write(socket, boost::asio::buffer("GET " + path + " HTTP/1.1\r\n\r\n"), error);
    std::string answer;
    boost::asio::read(socket, boost::asio::dynamic_buffer(answer), error);
    return answer.substr(0, answer.find('\r'));
  }
};

// A worker ran, and /healthz/ready said that none did.
TEST_F(HealthE2eTest, AnAgentIsReadyWhileItsWorkersRun) {
  const HeldPort health;
  const HeldPort meeting;
  Command waiting = StartAgent(
      {"--nnodes=2", "--rdzv-endpoint=" + meeting.endpoint(), "--health-port=" + health.number()},
      "true");
  ASSERT_TRUE(WaitUntil([&] { return Ask(health.number(), "/healthz") == "HTTP/1.1 200 OK"; }));
  EXPECT_EQ(Ask(health.number(), "/healthz/ready"), "HTTP/1.1 503 Service Unavailable");
  waiting.Signal(SIGTERM);
  EXPECT_EQ(waiting.Wait(), 128 + SIGTERM) << waiting.err();

  Command running = StartAgent({"--standalone", "--health-port=" + health.number()},
                               "while [ ! -e " + Path("end") + " ]; do sleep 0.1; done");
  EXPECT_TRUE(
      WaitUntil([&] { return Ask(health.number(), "/healthz/ready") == "HTTP/1.1 200 OK"; }));
  Write("end", "");
  EXPECT_EQ(running.Wait(), 0) << running.err();
}

}  // namespace
}  // namespace muster::test
