// gRPC reports how many calls have come over a connection, including those that no service has
// seen.
#include "rendezvous/net/grpc_connections.h"

#include <memory>
#include <string>

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "rendezvous/net/peer.h"

namespace muster::rendezvous {
namespace {

using Endpoint = StreamCounts::Endpoint;

// Refuses every call, and records where it came from.
class Refuser final : public grpc::CallbackGenericService {
 public:
  std::string last_peer() {
    const absl::MutexLock lock(&mutex_);
    return last_peer_;
  }

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() { Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no")); }
    void OnDone() override { delete this; }
  };
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const absl::MutexLock lock(&mutex_);
    last_peer_ = context->peer();
    return new Reactor;
  }

  absl::Mutex mutex_;
  std::string last_peer_ ABSL_GUARDED_BY(mutex_);
};

class StreamCountsTest : public testing::Test {
 protected:
  StreamCountsTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }

  // A separate connection with this many calls. Returns its address.
  Endpoint Call(int times) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channels_.push_back(grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_),
                                                  grpc::InsecureChannelCredentials(), arguments));
    for (int i = 0; i < times; ++i) CallAgain();
    return *HostEndpoint(ParsePeer(service_.last_peer()));
  }
  void CallAgain() {
    grpc::GenericStub stub(channels_.back());
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    grpc::ByteBuffer request, response;
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareUnaryCall(&context, "/a.B/C", request, &queue);
    call->StartCall();
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }

  Refuser service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  StreamCounts counts_;
};

TEST_F(StreamCountsTest, EachConnectionHasItsOwn) {
  const Endpoint one = Call(3), other = Call(1);
  EXPECT_EQ(counts_.Begun(one), 3u);
  EXPECT_EQ(counts_.Begun(other), 1u);
  CallAgain();
  EXPECT_EQ(counts_.Begun(other), 2u);
}

TEST_F(StreamCountsTest, AConnectionThatIsNotThereHasNone) {
  Call(1);
  EXPECT_EQ(counts_.Begun({boost::asio::ip::make_address("10.0.0.1"), 1}), std::nullopt);
}

TEST_F(StreamCountsTest, OneThatHasEndedHasNoneAnyMore) {
  const Endpoint ended = Call(1);
  EXPECT_EQ(counts_.Begun(ended), 1u);
  channels_.clear();
  server_->Shutdown();
  server_.reset();
  EXPECT_EQ(counts_.Begun(ended), std::nullopt);
}

// The sockets come in pages.
TEST_F(StreamCountsTest, OneOfManyIsFound) {
  Endpoint last;
  for (int i = 0; i < 150; ++i) last = Call(1);
  EXPECT_EQ(counts_.Begun(last), 1u);
}

}  // namespace
}  // namespace muster::rendezvous
