#include "rendezvous/client/daemon_channel.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using Proof = Credentials::Proof;

ConnectionError Read(const std::string& message, Proof proof = Proof::kToken) {
  return ReadConnectionError({grpc::StatusCode::UNAVAILABLE, message}, proof);
}

TEST(GrpcErrorTest, ACertificateOfASiteIsNoToken) {
  const ConnectionError error = Read(
      "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake "
      "failed: SSL_ERROR_SSL: error:0A000086:SSL routines::certificate verify failed",
      Proof::kSite);
  EXPECT_EQ(error.cause,
            "its certificate has expired, or was not issued by an authority in --tls-ca");
  EXPECT_EQ(error.kind, ConnectionError::Kind::kForeign);
}

TEST(GrpcErrorTest, CauseStandsWithoutWhatGrpcWrapsAroundIt) {
  const ConnectionError refused = Read(
      "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to "
      "connect to remote host: Connection refused");
  EXPECT_EQ(refused.cause, "Connection refused");
  EXPECT_EQ(refused.kind, ConnectionError::Kind::kRefused);
}

// A daemon was stopped, and the user read of "SETTINGS frames".
TEST(GrpcErrorTest, DaemonThatStandsStillIsToldInWords) {
  EXPECT_EQ(Read("failed to connect to all addresses; last error: UNAVAILABLE: "
                 "ipv4:127.0.0.1:31400: connection attempt timed out before receiving SETTINGS "
                 "frame")
                .cause,
            "it accepts connections but does not answer");
}

// A web server at the endpoint was told to be a Muster "started without a token", and --insecure
// was advised.
TEST(GrpcErrorTest, AnotherProgramIsNotToldToBeMuster) {
  const ConnectionError http = Read(
      "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:80: Ssl handshake "
      "failed: SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong version number");
  EXPECT_EQ(http.cause, "what answers there is not a Muster rendezvous");
  EXPECT_EQ(http.kind, ConnectionError::Kind::kForeign);
  EXPECT_TRUE(http.is_in_doubt);
  EXPECT_EQ(Recognized(http, "it speaks HTTP").cause,
            "what answers there is not a Muster rendezvous: it speaks HTTP; choose another port, "
            "or stop the process using this one");
  EXPECT_EQ(Recognized(http, "").cause, http.cause);
  // These say the same as a Muster with another token does.
  for (const char* const words : {"Ssl handshake failed: SSL_ERROR_SSL: certificate verify failed",
                                  "Trying to connect an http1.x server"}) {
    const ConnectionError error = Read(words);
    EXPECT_TRUE(error.is_in_doubt) << words;
    EXPECT_EQ(Recognized(error, "").cause, error.cause);
    EXPECT_EQ(Recognized(error, "it speaks TLS").cause, Recognized(http, "it speaks TLS").cause);
  }
}

// "Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL routines::certificate verify failed."
TEST(GrpcErrorTest, AnotherTokenIsToldInWordsAndNotTriedAgain) {
  const auto message = [](const std::string& cause) {
    return "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:43227: " +
           cause;
  };
  const auto handshake = [&](const std::string& cause) {
    return Read(
        message("Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL routines::" + cause));
  };
  EXPECT_EQ(handshake("certificate verify failed").kind, ConnectionError::Kind::kForeign);
  EXPECT_EQ(handshake("certificate verify failed").cause,
            "it was started with another token than the one here, or the clocks of the two "
            "machines differ by hours");
  const ConnectionError plain = handshake("tlsv1 alert insufficient security");
  EXPECT_EQ(plain.kind, ConnectionError::Kind::kForeign);
  EXPECT_EQ(plain.cause,
            "it was started without a token; start it with the one here, or use none here either "
            "(--insecure)");
  EXPECT_FALSE(plain.is_in_doubt) << "nobody but Muster says so";
  const ConnectionError secure = Read(message("Trying to connect an http1.x server"));
  EXPECT_EQ(secure.kind, ConnectionError::Kind::kForeign);
  EXPECT_EQ(secure.cause, "it requires the token that it was started with");
  // Whatever else fails may not fail the next time.
  const ConnectionError other = handshake("unexpected eof while reading");
  EXPECT_EQ(other.kind, ConnectionError::Kind::kBroken);
  EXPECT_EQ(other.cause,
            "no secure connection could be made (SSL_ERROR_SSL: error:0A000086:SSL "
            "routines::unexpected eof while reading)");
}

}  // namespace
}  // namespace muster::rendezvous
