#include "rendezvous/client/grpc_error.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

ConnectionError Read(const std::string& message) {
  return ReadConnectionError({grpc::StatusCode::UNAVAILABLE, message});
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
            "it takes connections and does not answer");
}

}  // namespace
}  // namespace muster::rendezvous
