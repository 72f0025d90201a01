// When Muster drops a call, gRPC must get exactly one answer, so that a server can shut down.
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
using Answer = std::function<void(const std::shared_ptr<LoopCall>&)>;

// Answers every call as if it were NumKeys.
class Service final : public grpc::CallbackGenericService {
 public:
  Service(LoopCall::Shared& shared, Answer answer)
      : shared_(shared),
        method_{.request = &store::v1::NumKeysRequest::default_instance(),
                .response = &store::v1::NumKeysResponse::default_instance(),
                .admit = [](const LoopCall&) -> absl::StatusOr<Admission> { return Admission(); },
                .answer = std::move(answer)} {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    auto* const reactor = LoopCall::Start(shared_, method_, *context, {});
    entered.set_value();
    return reactor;
  }

  std::promise<void> entered;

 private:
  LoopCall::Shared& shared_;
  const LoopCall::Method method_;
};

// With requests that are read early, and with requests that wait for their turn.
class LoopCallTest : public ::testing::TestWithParam<bool> {
 protected:
  // Starts a server whose single call is answered by `answer`, and that call; returns once the
  // server has received it.
  std::future<grpc::Status> Call(Answer answer) {
    service_ = std::make_unique<Service>(*shared_, std::move(answer));
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(service_.get());
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

  // Runs the loop until the call has been answered.
  grpc::Status Run(std::future<grpc::Status>& status) {
    const auto work = boost::asio::make_work_guard(*loop_);
    while (status.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      loop_->run_one_for(std::chrono::milliseconds(10));
    }
    return status.get();
  }

  std::unique_ptr<boost::asio::io_context> loop_ = std::make_unique<boost::asio::io_context>();
  std::unique_ptr<LoopCall::Shared> shared_{new LoopCall::Shared{
      .loop = *loop_,
      .early = std::make_shared<EarlyReads>(GetParam() ? 1 : 0),
      .turns =
          ReadScheduler(*loop_, {.at_once = 1, .of_host = 1, .patience = std::chrono::hours(1)}),
      .untaken = UnreadResponses(*loop_, {.bytes = 1 << 20, .answers = 1}, [](const Peer&) {})}};
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

INSTANTIATE_TEST_SUITE_P(, LoopCallTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Early" : "InTurn"; });

TEST_P(LoopCallTest, StatusIsThatOfTheFirstFinish) {
  auto status = Call([](const std::shared_ptr<LoopCall>& call) {
    call->Finish(absl::AbortedError("first"));
    EXPECT_TRUE(call->finished());
    call->Finish(absl::OkStatus());
  });
  const grpc::Status seen = Run(status);
  EXPECT_EQ(seen.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(seen.error_message(), "first");
}

TEST_P(LoopCallTest, CallThatIsDroppedUnansweredIsUnavailable) {
  auto status = Call([](const std::shared_ptr<LoopCall>&) {});
  EXPECT_EQ(Run(status).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_P(LoopCallTest, CallWhoseLoopIsDestroyedIsUnavailable) {
  auto status = Call([](const std::shared_ptr<LoopCall>&) { FAIL() << "the loop never runs"; });
  shared_.reset();
  loop_.reset();
  EXPECT_EQ(status.get().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace muster::rendezvous
