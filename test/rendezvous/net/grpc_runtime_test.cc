// The network libraries write nothing to stderr.
#include "rendezvous/net/grpc_server.h"

#include <string>

#include <gtest/gtest.h>

#include "proto/store.pb.h"

namespace muster::rendezvous {
namespace {

// "Two messages from a stranger, and a daemon whose stderr was not read hung for good."
TEST(GrpcRuntimeTest, TextThatIsNotUtf8IsNotWrittenAbout) {
  InitGrpcRuntime();
  testing::internal::CaptureStderr();
  store::v1::BarrierRequest request;
  EXPECT_FALSE(request.ParseFromString("\x0a\x02\xff\xfe"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace muster::rendezvous
