// When Muster forgets a call, gRPC must get exactly one answer, so that a server can shut down.
#include "rendezvous/fronts/loop_call.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>
#include <boost/asio/io_context.hpp>

#include "proto/store.grpc.pb.h"

namespace muster::rendezvous {
namespace {

using store::v1::Store;

// Answers NumKeys with `work`.
class Service final : public Store::CallbackService {
 public:
  Service(boost::asio::io_context& loop, LoopCall::Work work)
      : loop_(loop), work_(std::move(work)) {}

  grpc::ServerUnaryReactor* NumKeys(grpc::CallbackServerContext*, const store::v1::NumKeysRequest*,
                                    store::v1::NumKeysResponse*) override {
    grpc::ServerUnaryReactor* reactor = LoopCall::Start(loop_, work_);
    entered.set_value();
    return reactor;
  }

  std::promise<void> entered;

 private:
  boost::asio::io_context& loop_;
  LoopCall::Work work_;
};

class LoopCallTest : public ::testing::Test {
 protected:
  // Starts a server whose one call is answered by `work`, and that call; returns once it was
  // posted.
  std::future<grpc::Status> Call(LoopCall::Work work) {
    service_ = std::make_unique<Service>(*loop_, std::move(work));
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    std::future<grpc::Status> status = std::async(std::launch::async, [port] {
      const auto stub = Store::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                                           grpc::InsecureChannelCredentials()));
      grpc::ClientContext context;
      store::v1::NumKeysResponse response;
      return stub->NumKeys(&context, {}, &response);
    });
    service_->entered.get_future().wait();
    return status;
  }

  std::unique_ptr<boost::asio::io_context> loop_ = std::make_unique<boost::asio::io_context>();
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(LoopCallTest, StatusIsThatOfTheFirstFinish) {
  auto status = Call([](std::shared_ptr<LoopCall> call) {
    call->Finish(absl::AbortedError("first"));
    EXPECT_TRUE(call->finished());
    call->Finish(absl::OkStatus());
  });
  loop_->run();
  const grpc::Status seen = status.get();
  EXPECT_EQ(seen.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(seen.error_message(), "first");
}

TEST_F(LoopCallTest, CallThatIsDroppedUnansweredIsUnavailable) {
  auto status = Call([](std::shared_ptr<LoopCall>) {});
  loop_->run();
  EXPECT_EQ(status.get().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(LoopCallTest, CallWhoseLoopIsDestroyedIsUnavailable) {
  auto status = Call([](std::shared_ptr<LoopCall>) { FAIL() << "the loop never runs"; });
  loop_.reset();
  EXPECT_EQ(status.get().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace muster::rendezvous
