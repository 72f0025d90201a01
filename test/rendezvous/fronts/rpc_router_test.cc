// Every call through one router, with a gate that counts them: real clients with a real gRPC
// server, over plaintext and over TLS. The loop runs here, the clients on threads of their own.
#include "rendezvous/fronts/rpc_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <grpc/grpc_security.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "proto/store.grpc.pb.h"
#include "rendezvous/net/credentials.h"
#include "rendezvous/net/grpc_server.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using store::v1::Store;
using test::RunUntil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kOfConnection = 3;

// Delays the gate when it checks a connection's first call.
class SlowCredentials final : public grpc::ServerCredentials {
 public:
  SlowCredentials(std::shared_ptr<CallGate> gate, std::function<void()> look)
      : gate_(std::move(gate)), look_(std::move(look)) {}
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_credentials* const credentials = grpc_insecure_server_credentials_create();
    gate_->Guard(credentials, [look = look_](absl::string_view) {
      look();
      return std::string();
    });
    const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  const std::shared_ptr<CallGate> gate_;
  const std::function<void()> look_;
};

// Before any gRPC object is created.
struct GrpcRuntime {
  GrpcRuntime() { InitGrpcRuntime(); }
};

class RpcRouterTest : GrpcRuntime, public ::testing::TestWithParam<bool> {
 protected:
  RpcRouterTest() {
    router_.Serve<store::v1::NumKeysRequest, store::v1::NumKeysResponse>(
        Rpc::kStoreNumKeys,
        [this](DaemonLoop&, const std::shared_ptr<LoopCall>& call,
               const store::v1::NumKeysRequest& request, store::v1::NumKeysResponse* response) {
          response->set_num_keys(request.run_id().size());
          calls_.push_back(call);
        });
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", server_credentials_, &port_);
    CallGate::Configure(builder);
    builder.RegisterCallbackGenericService(&router_);
    server_ = builder.BuildAndStart();
    channel_ = NewChannel();
  }

  ~RpcRouterTest() override {
    router_.Close();
    calls_.clear();
    // Runs on another thread, as it waits for work on the loop.
    std::future<void> down = std::async(std::launch::async, [this] { server_->Shutdown(); });
    EXPECT_TRUE(RunUntil(
        io_, [&] { return down.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  }

  std::shared_ptr<grpc::Channel> NewChannel() {
    const Credentials::Client client = credentials_.ForClient();
    grpc::ChannelArguments arguments;
    if (!client.server_name.empty()) {
      arguments.SetSslTargetNameOverride(client.server_name);
    }
    // A separate connection.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_), client.credentials,
                                     arguments);
  }

  std::future<grpc::Status> Call(grpc::ClientContext& context) {
    return std::async(std::launch::async, [this, &context] {
      store::v1::NumKeysResponse response;
      store::v1::NumKeysRequest request;
      request.set_run_id("job");
      return Store::NewStub(channel_)->NumKeys(&context, request, &response);
    });
  }
  grpc::Status Result(std::future<grpc::Status>& call) {
    EXPECT_TRUE(RunUntil(
        io_, [&] { return call.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
    return call.get();
  }
  // Each call is counted exactly as long as it exists.
  void ExpectUnderWay(std::size_t count) {
    EXPECT_TRUE(RunUntil(io_, [&] { return gate_->under_way() == count; }))
        << gate_->under_way() << " calls are under way, not " << count;
  }

  boost::asio::io_context io_;
  Credentials credentials_ =
      GetParam() ? Credentials::FromToken(Token::Random(), Role::kTool) : Credentials::Plaintext();
  absl::Status admission_;
  bool is_being_opened_ = false;  // the caller's tenant
  std::vector<std::function<void()>> await_access_;
  std::uint64_t told_refused_ = 0;
  std::vector<std::string> dropped_;
  DaemonLoop daemon_loop_{io_, nullptr};
  RpcRouter router_{
      io_,
      {.access = [this](Rpc rpc,
                        const grpc::CallbackServerContext&) -> absl::StatusOr<DaemonLoop*> {
         EXPECT_EQ(rpc, Rpc::kStoreNumKeys);
         if (!admission_.ok()) return admission_;
         return &daemon_loop_;
       },
       .await_access =
           [this](const grpc::CallbackServerContext&, std::function<void()> over) {
             if (!is_being_opened_) return false;
             await_access_.push_back(std::move(over));
             return true;
           },
       .calls = {.of_connection = kOfConnection,
                 .refused_of_connection = 2,
                 .of_tenant = 5,
                 .of_all = 5},
       .on_refused = [this](const Peer&, std::uint64_t refused) { told_refused_ += refused; },
       .drop = [this](const Peer& peer) { dropped_.push_back(peer.address); }}};
  const std::shared_ptr<CallGate> gate_ = router_.gate();
  // Used at each connection, so they live as long as the server.
  const std::shared_ptr<grpc::ServerCredentials> server_credentials_ =
      credentials_.ForServer(gate_).ports.front();
  std::vector<std::shared_ptr<LoopCall>> calls_;  // that have been read
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

INSTANTIATE_TEST_SUITE_P(, RpcRouterTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Tls" : "Plaintext"; });

TEST_P(RpcRouterTest, ACallBeyondAConnectionsLimitIsRefusedAndTheOthersAreAnswered) {
  grpc::ClientContext contexts[kOfConnection + 2];
  std::vector<std::future<grpc::Status>> calls;
  for (std::size_t i = 0; i < kOfConnection; ++i) calls.push_back(Call(contexts[i]));
  ASSERT_TRUE(RunUntil(io_, [&] { return calls_.size() == kOfConnection; }));
  std::future<grpc::Status> one_more = Call(contexts[kOfConnection]);
  const grpc::Status refused = Result(one_more);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("too many calls"));
  EXPECT_EQ(gate_->refused(), 1u);

  for (const auto& call : std::exchange(calls_, {})) call->Finish(absl::OkStatus());
  for (auto& call : calls) EXPECT_TRUE(Result(call).ok());
  ExpectUnderWay(0);
  // The gate reports it at the next call that reaches a service.
  std::future<grpc::Status> next = Call(contexts[kOfConnection + 1]);
  ASSERT_TRUE(RunUntil(io_, [&] { return calls_.size() == 1; }));
  calls_[0]->Finish(absl::OkStatus());
  EXPECT_TRUE(Result(next).ok());
}

// While gRPC refused 100,000 calls of one client it read nothing from others: an agent was given up
// as lost, and `muster status` was told that its message took too long.
TEST_P(RpcRouterTest, AConnectionThatGoesOnCallingBeyondItsLimitIsEnded) {
  grpc::ClientContext contexts[kOfConnection + 3];
  std::vector<std::future<grpc::Status>> calls;
  for (std::size_t i = 0; i < kOfConnection; ++i) calls.push_back(Call(contexts[i]));
  ASSERT_TRUE(RunUntil(io_, [&] { return calls_.size() == kOfConnection; }));
  for (std::size_t i = kOfConnection; i < std::size(contexts); ++i) {
    std::future<grpc::Status> refused = Call(contexts[i]);
    EXPECT_EQ(Result(refused).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  EXPECT_TRUE(RunUntil(io_, [&] { return !dropped_.empty(); }));
  EXPECT_THAT(dropped_, ElementsAre("127.0.0.1"));
  EXPECT_EQ(told_refused_, 2u);
  calls_.clear();
  for (auto& call : calls) Result(call);
}

// 100,000 calls that were opened and reset took 694 MiB of a daemon, in one of six runs: each ended
// before gRPC had freed it, so few of them ever counted.
TEST_P(RpcRouterTest, ACallThatItsClientCancelledCountsForASecondMore) {
  grpc::ClientContext contexts[kOfConnection + 1];
  for (std::size_t i = 0; i < kOfConnection; ++i) {
    std::future<grpc::Status> call = Call(contexts[i]);
    ASSERT_TRUE(RunUntil(io_, [&] { return calls_.size() == 1; }));
    contexts[i].TryCancel();
    EXPECT_EQ(Result(call).error_code(), grpc::StatusCode::CANCELLED);
    ASSERT_TRUE(RunUntil(io_, [&] { return calls_[0]->finished(); }));
    calls_.clear();
  }
  std::future<grpc::Status> one_more = Call(contexts[kOfConnection]);
  EXPECT_EQ(Result(one_more).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectUnderWay(0);
}

TEST_P(RpcRouterTest, EveryWayInWhichACallMayEndUncountsIt) {
  // Cancelled while being answered.
  grpc::ClientContext cancelled;
  std::future<grpc::Status> call = Call(cancelled);
  ASSERT_TRUE(RunUntil(io_, [&] { return calls_.size() == 1; }));
  ExpectUnderWay(1);
  cancelled.TryCancel();
  EXPECT_EQ(Result(call).error_code(), grpc::StatusCode::CANCELLED);
  calls_.clear();
  ExpectUnderWay(0);

  // Refused before its request is read.
  admission_ = absl::PermissionDeniedError("not you");
  grpc::ClientContext denied;
  call = Call(denied);
  EXPECT_EQ(Result(call).error_message(), "not you");
  admission_ = absl::OkStatus();
  ExpectUnderWay(0);

  // Dropped.
  grpc::ClientContext forgotten;
  call = Call(forgotten);
  ASSERT_TRUE(RunUntil(io_, [&] { return calls_.size() == 1; }));
  calls_.clear();
  EXPECT_EQ(Result(call).error_code(), grpc::StatusCode::UNAVAILABLE);
  ExpectUnderWay(0);

  // Of an unknown service, and one that exists but has no handler.
  grpc::ClientContext unknown;
  store::v1::GetResponse value;
  EXPECT_EQ(Store::NewStub(channel_)->Get(&unknown, {}, &value).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  ExpectUnderWay(0);
}

// `muster status` of a new tenant was told that the daemon was not ready.
TEST_P(RpcRouterTest, ACallWaitsWhileWhatItsCallerMayTouchIsBeingOpened) {
  is_being_opened_ = true;
  admission_ = absl::UnavailableError("not yet");
  grpc::ClientContext waits;
  std::future<grpc::Status> call = Call(waits);
  ASSERT_TRUE(RunUntil(io_, [&] { return await_access_.size() == 1; }));
  // It may have to wait again.
  std::exchange(await_access_, {})[0]();
  ASSERT_EQ(await_access_.size(), 1u);
  admission_ = absl::OkStatus();
  std::exchange(await_access_, {})[0]();
  ASSERT_TRUE(RunUntil(io_, [&] { return calls_.size() == 1; }));
  calls_[0]->Finish(absl::OkStatus());
  EXPECT_TRUE(Result(call).ok());
  calls_.clear();

  // One whose client has gone when its turn comes, and one that gets an error.
  admission_ = absl::UnavailableError("not yet");
  grpc::ClientContext cancelled;
  call = Call(cancelled);
  ASSERT_TRUE(RunUntil(io_, [&] { return await_access_.size() == 1; }));
  cancelled.TryCancel();
  EXPECT_EQ(Result(call).error_code(), grpc::StatusCode::CANCELLED);
  grpc::ClientContext refused;
  call = Call(refused);
  ASSERT_TRUE(RunUntil(io_, [&] { return await_access_.size() == 2; }));
  admission_ = absl::UnavailableError("it is damaged");
  is_being_opened_ = false;
  for (const auto& over : std::exchange(await_access_, {})) over();
  EXPECT_EQ(Result(call).error_message(), "it is damaged");
  ExpectUnderWay(0);
}

TEST_P(RpcRouterTest, ACallThatWaitsEndsWithTheDaemon) {
  is_being_opened_ = true;
  admission_ = absl::UnavailableError("not yet");
  grpc::ClientContext waits;
  std::future<grpc::Status> call = Call(waits);
  ASSERT_TRUE(RunUntil(io_, [&] { return await_access_.size() == 1; }));
  router_.Close();
  EXPECT_EQ(Result(call).error_message(), "the daemon is stopping");
}

TEST_P(RpcRouterTest, ACallWithoutAMessageOrWithAnotherOneIsToldSo) {
  grpc::GenericStub stub(channel_);
  for (const char* bytes : {"", "\xff\xff\xff"}) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    auto call = stub.PrepareCall(&context, "/muster.store.v1.Store/NumKeys", &queue);
    grpc::Status status;
    std::future<void> done = std::async(std::launch::async, [&] {
      const auto next = [&queue] {
        void* tag = nullptr;
        bool ok = false;
        queue.Next(&tag, &ok);
      };
      call->StartCall(nullptr);
      next();
      if (*bytes != '\0') {
        const grpc::Slice slice(bytes);
        call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
        next();
      }
      call->WritesDone(nullptr);
      next();
      call->Finish(&status, nullptr);
      next();
    });
    EXPECT_TRUE(RunUntil(
        io_, [&] { return done.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    ExpectUnderWay(0);
  }
  EXPECT_TRUE(calls_.empty());
}

TEST_P(RpcRouterTest, ConnectionsThatEndUncountTheirCalls) {
  grpc::ClientContext contexts[kOfConnection];
  std::vector<std::future<grpc::Status>> calls;
  for (grpc::ClientContext& context : contexts) calls.push_back(Call(context));
  ASSERT_TRUE(RunUntil(io_, [&] { return calls_.size() == kOfConnection; }));
  for (grpc::ClientContext& context : contexts) context.TryCancel();
  for (auto& call : calls) Result(call);
  channel_.reset();
  calls_.clear();
  ExpectUnderWay(0);
}

// Calls with short deadlines eventually made a daemon refuse all calls: one that expired while the
// gate checked it stayed counted forever.
TEST(CallGateTest, ACallWhoseDeadlinePassesAtTheGateIsUncounted) {
  InitGrpcRuntime();
  boost::asio::io_context io;
  DaemonLoop daemon_loop(io, nullptr);
  RpcRouter router(
      io, {.access = [&](Rpc, const grpc::CallbackServerContext&) -> absl::StatusOr<DaemonLoop*> {
             return &daemon_loop;
           },
           .calls = {.of_connection = 1, .of_tenant = 1, .of_all = 1}});
  const std::shared_ptr<CallGate> gate = router.gate();
  std::promise<void> asked;
  const auto credentials = std::make_shared<SlowCredentials>(gate, [&asked] {
    asked.set_value();
    // The deadline expires meanwhile, and gRPC has time to notice.
    std::this_thread::sleep_for(std::chrono::seconds(2));
  });
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  CallGate::Configure(builder);
  builder.RegisterCallbackGenericService(&router);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();

  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
  std::future<grpc::StatusCode> call = std::async(std::launch::async, [&] {
    store::v1::NumKeysResponse response;
    return Store::NewStub(grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                              grpc::InsecureChannelCredentials()))
        ->NumKeys(&context, {}, &response)
        .error_code();
  });
  asked.get_future().wait();
  // The gate does not report before it has counted the call.
  EXPECT_TRUE(RunUntil(
      io, [&] { return gate->under_way() == 0; }, std::chrono::seconds(10)))
      << "the call is counted for ever";
  EXPECT_EQ(call.get(), grpc::StatusCode::DEADLINE_EXCEEDED);
  std::future<void> down = std::async(std::launch::async, [&] { server->Shutdown(); });
  EXPECT_TRUE(RunUntil(
      io, [&] { return down.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
}

}  // namespace
}  // namespace muster::rendezvous
