// Any call on the loop, with a server that says everything again: whoever lets go of one, at any
// moment, hears nothing more of it, and gRPC keeps nothing of it.
#include "rendezvous/net/client_stream.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/create_channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include "proto/tunnel.grpc.pb.h"
#include "rendezvous/net/grpc_server.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using test::RunUntil;
using EchoCall = ClientStream<tunnel::v1::Chunk, tunnel::v1::Chunk>;

class EchoServer final : public tunnel::v1::Tunnel::CallbackService {
 public:
  EchoServer() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    stub_ = tunnel::v1::Tunnel::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                                            grpc::InsecureChannelCredentials()));
  }
  ~EchoServer() override { server_->Shutdown(); }

  tunnel::v1::Tunnel::Stub& stub() { return *stub_; }

 private:
  struct Call final : grpc::ServerBidiReactor<tunnel::v1::Chunk, tunnel::v1::Chunk> {
    Call() {
      StartSendInitialMetadata();
      StartRead(&chunk);
    }
    void OnReadDone(bool ok) override {
      if (ok) return StartWrite(&chunk);
      Finish(grpc::Status(grpc::StatusCode::ABORTED, "heard all"));
    }
    void OnWriteDone(bool ok) override {
      if (ok) StartRead(&chunk);
      if (!ok) Finish(grpc::Status::CANCELLED);
    }
    void OnDone() override { delete this; }

    tunnel::v1::Chunk chunk;
  };

  grpc::ServerBidiReactor<tunnel::v1::Chunk, tunnel::v1::Chunk>* Carry(
      grpc::CallbackServerContext*) override {
    return new Call;  // deleted by OnDone
  }

  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<tunnel::v1::Tunnel::Stub> stub_;
};

class ClientStreamTest : public ::testing::Test {
 protected:
  ClientStreamTest() { InitGrpcRuntime(); }
  // The loop runs dry only when gRPC has let go of every call.
  ~ClientStreamTest() override {
    call_.reset();
    io_.restart();
    io_.run();
  }

  // Says each of these, and then no more. `let_go_when`: the owner lets go when it hears that.
  void Begin(const std::vector<std::string>& said, const std::string& let_go_when = "") {
    io_.restart();
    call_ = EchoCall::Make(io_);
    server_.stub().async()->Carry(&call_->context(), call_.get());
    for (const std::string& data : said) Say(data);
    const auto hear = [this, let_go_when](const std::string& what) {
      EXPECT_NE(call_, nullptr) << what << " is told to whoever has let go";
      heard_.push_back(what);
      if (what == let_go_when) call_.reset();
    };
    call_->Start(
        {.on_accepted = [hear] { hear("accepted"); },
         .on_read = [hear](const tunnel::v1::Chunk& chunk) { hear(chunk.data()); },
         .on_written = [hear](bool ok) { hear(ok ? "written" : "broken"); },
         .on_done = [hear](const grpc::Status& end) { hear("done: " + end.error_message()); }});
  }
  void Say(const std::string& data) {
    tunnel::v1::Chunk chunk;
    chunk.set_data(data);
    call_->Send(std::move(chunk));
  }
  bool Hears(const std::string& what) {
    return RunUntil(io_, [&] { return !heard_.empty() && heard_.back() == what; });
  }

  EchoServer server_;
  boost::asio::io_context io_;
  EchoCall::Owner call_;
  std::vector<std::string> heard_;
};

TEST_F(ClientStreamTest, EverythingSaidIsHeardInOrderAndThenTheEnd) {
  Begin({"one", "two", "three"});
  call_->EndSending();
  Say("four");
  ASSERT_TRUE(Hears("done: heard all"));
  // GRPC says these when it likes.
  std::erase(heard_, "written");
  std::erase(heard_, "accepted");
  EXPECT_EQ(heard_, (std::vector<std::string>{"one", "two", "three", "done: heard all"}));
}

TEST_F(ClientStreamTest, OwnerMayLetGoAtAnyMoment) {
  for (int turns = 0; turns < 60; ++turns) {
    Begin({"one", "two", "three"});
    if (turns % 2 == 0) call_->EndSending();
    for (int turn = 0; turn < turns / 2; ++turn) io_.run_one_for(std::chrono::milliseconds(1));
    call_.reset();
    // Now and then all of them at once.
    if (turns % 3 == 0) {
      io_.restart();
      io_.run();
    }
  }
}

TEST_F(ClientStreamTest, OwnerMayLetGoWithinAnyHandler) {
  for (const std::string when : {"accepted", "written", "one", "two", "done: heard all"}) {
    heard_.clear();
    Begin({"one", "two"}, when);
    call_->EndSending();
    EXPECT_TRUE(RunUntil(io_, [&] { return call_ == nullptr; })) << when;
    io_.restart();
    io_.run();
    EXPECT_EQ(heard_.back(), when);
  }
}

TEST_F(ClientStreamTest, CallThatIsOverMayBeKept) {
  Begin({"one"});
  call_->EndSending();
  ASSERT_TRUE(Hears("done: heard all"));
  Say("two");
  call_->Pause();
  call_->Resume();
  call_->End();
  call_->Cancel();
  io_.restart();
  io_.run();
  EXPECT_EQ(heard_.back(), "done: heard all");
}

TEST_F(ClientStreamTest, CancelledCallIsOverAndSaysSo) {
  Begin({"one"});
  ASSERT_TRUE(Hears("one"));
  call_->Cancel();
  ASSERT_TRUE(RunUntil(io_, [&] { return heard_.back().starts_with("done: "); }));
}

TEST_F(ClientStreamTest, PausedCallReadsNothingUntilItGoesOn) {
  Begin({});
  call_->Pause();
  Say("one");
  ASSERT_TRUE(Hears("one")) << "was asked for before";
  Say("two");
  Say("three");
  ASSERT_TRUE(RunUntil(io_, [&] { return heard_.size() == 5; })) << "all is written";
  EXPECT_EQ(heard_.back(), "written");
  call_->Resume();
  ASSERT_TRUE(Hears("three"));
}

}  // namespace
}  // namespace muster::rendezvous
