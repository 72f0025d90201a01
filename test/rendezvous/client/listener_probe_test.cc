// A web server on the rendezvous's port was taken for a Muster without a token, and the user was
// advised to go without one as well.
#include "rendezvous/client/probes.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using test::RunUntil;
using testing::HasSubstr;

TEST(ListenerProbeTest, WhatSpeaksIsTold) {
  EXPECT_EQ(WhatSpeaks(""), "");
  EXPECT_THAT(WhatSpeaks("HTTP/1.1 400 Bad Request\r\n"), HasSubstr("it speaks HTTP, as a web"));
  EXPECT_EQ(WhatSpeaks("SSH-2.0-OpenSSH_9.2p1\r\n"), "it speaks SSH");
  EXPECT_EQ(WhatSpeaks(std::string("\x15\x03\x01\x00\x02\x02\x46", 7)), "it speaks TLS");
  EXPECT_EQ(WhatSpeaks("-ERR unknown command\r\nmore"), "it says \"-ERR unknown command\"");
  EXPECT_EQ(WhatSpeaks("220 mail.example.org ESMTP with more to say"),
            "it says \"220 mail.example.org ESM\"");
  EXPECT_EQ(WhatSpeaks(std::string("\x00\x01\x1b[2J", 6)), "it says \"???[2J\"");
}

class ListenerProbePortTest : public ::testing::Test {
 protected:
  // What is told of a program that says this to whoever connects, and then closes.
  std::string Probe(const std::string& says) {
    tcp::socket peer(io_);
    acceptor_.async_accept(peer, [&](const boost::system::error_code&) {
      boost::asio::write(peer, boost::asio::buffer(says));
      peer.shutdown(tcp::socket::shutdown_send);
    });
    std::optional<std::string> told;
    ProbeListener(io_, {"127.0.0.1", acceptor_.local_endpoint().port()},
                  [&](const std::string& speaks) { told = speaks; });
    EXPECT_TRUE(RunUntil(io_, [&] { return told.has_value(); }));
    return told.value_or("nothing");
  }

  boost::asio::io_context io_;
  tcp::acceptor acceptor_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
};

TEST_F(ListenerProbePortTest, FirstWordsOfWhoListensAreRead) {
  EXPECT_EQ(Probe("SSH-2.0-x\r\n"), "it speaks SSH");
  EXPECT_EQ(Probe(""), "");
}

TEST_F(ListenerProbePortTest, WhoSaysNothingIsNotWaitedForForEver) {
  std::optional<std::string> told;
  ProbeListener(io_, {"127.0.0.1", acceptor_.local_endpoint().port()},
                [&](const std::string& speaks) { told = speaks; });
  EXPECT_TRUE(RunUntil(io_, [&] { return told.has_value(); }));
  EXPECT_EQ(told, "");
}

TEST_F(ListenerProbePortTest, APortWithoutAListenerIsNobody) {
  const std::uint16_t port = acceptor_.local_endpoint().port();
  acceptor_.close();
  EXPECT_EQ(ProbeListener({"127.0.0.1", port}), "");
}

}  // namespace
}  // namespace muster::rendezvous
