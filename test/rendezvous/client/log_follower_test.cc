// A reader of logs whose daemon ends: over real local connections, on one loop and one thread.
#include "rendezvous/client/log_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/server/server.h"
#include "test/rendezvous/support/join_request.h"
#include "test/rendezvous/support/recording_listener.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using test::RunUntil;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// An agent that brings one line, with its place in the stream unless it is an old one, and goes on.
class LineAgent : public RecordingListener {
 public:
  void OnDirective(const Directive& directive) override {
    const auto* wanted = std::get_if<LogWanted>(&directive);
    if (wanted == nullptr) return RecordingListener::OnDirective(directive);
    has_sent = false;
    delivery = client->DeliverLog(wanted->delivery, {.on_ready = [this] { Bring(); },
                                                     .on_over = [this] { delivery.reset(); }});
  }

  std::unique_ptr<RendezvousClient> client;
  std::unique_ptr<LogDelivery> delivery;
  bool has_sent = false;
  bool is_old = false;

 private:
  void Bring() {
    if (std::exchange(has_sent, true)) return;
    LogText text{.bytes = "one\n"};
    if (!is_old) text.offset = 0;
    delivery->Send(std::move(text));
  }
};

class LogFollowerTest : public ::testing::Test {
 protected:
  LogFollowerTest() {
    EXPECT_TRUE(server_->Listen({"127.0.0.1", 0}, Credentials::Plaintext()).ok());
    endpoint_ = {"127.0.0.1", server_->port()};
    agent_.client = MakeGrpcClient(io_, {.endpoint = endpoint_}, agent_);
    JoinRequest request = RequestFor(1, 1);
    request.node.delivers_logs = true;
    agent_.client->Join(request);
    EXPECT_TRUE(RunUntil(io_, [this] { return agent_.Last<Assignment>() != nullptr; }));
  }
  ~LogFollowerTest() override {
    follower_.reset();
    agent_.delivery.reset();
    agent_.client.reset();
    server_.reset();
    // Until gRPC has let go of every stream.
    io_.restart();
    io_.run();
  }

  void Follow(std::chrono::milliseconds comes_back_for) {
    follower_.emplace(io_, DaemonOptions{.endpoint = endpoint_},
                      LogRequest{.run_id = "job", .extent = {.follow = true}}, comes_back_for,
                      LogFollower::Handlers{
                          .on_part =
                              [this](const LogPart& part) {
                                if (const auto* text = std::get_if<LogText>(&part))
                                  told_ += text->bytes;
                              },
                          .on_outage = [this](const std::string& why) { outages_.push_back(why); },
                          .on_end = [this](const absl::Status& status) { end_ = status; }});
    ASSERT_TRUE(RunUntil(io_, [this] { return told_ == "one\n"; }));
  }
  void StopDaemon() {
    server_->Stop([] {});
  }
  bool Ends() {
    return RunUntil(io_, [this] { return end_.has_value(); });
  }

  boost::asio::io_context io_;
  std::unique_ptr<Server> server_ = std::make_unique<Server>(io_);
  Endpoint endpoint_;
  LineAgent agent_;
  std::optional<LogFollower> follower_;
  std::string told_;
  std::vector<std::string> outages_;
  std::optional<absl::Status> end_;
};

TEST_F(LogFollowerTest, ADaemonThatDoesNotComeBackInTimeIsGivenUp) {
  Follow(std::chrono::milliseconds(1));
  StopDaemon();
  ASSERT_TRUE(Ends());
  EXPECT_EQ(end_->code(), absl::StatusCode::kUnavailable) << *end_;
  ASSERT_THAT(outages_, SizeIs(1));
  EXPECT_THAT(outages_[0], HasSubstr(ToString(endpoint_) + ": the daemon stopped"));
  EXPECT_EQ(told_, "one\n");
}

// What it does not say cannot be asked for.
TEST_F(LogFollowerTest, WithAnAgentOfAnOlderVersionItEndsWithTheConnection) {
  agent_.is_old = true;
  Follow(std::chrono::hours(1));
  StopDaemon();
  ASSERT_TRUE(Ends());
  EXPECT_EQ(end_->code(), absl::StatusCode::kUnavailable) << *end_;
  EXPECT_THAT(outages_, SizeIs(0));
}

TEST_F(LogFollowerTest, MayBeDestroyedWhileItWaits) {
  Follow(std::chrono::hours(1));
  StopDaemon();
  ASSERT_TRUE(RunUntil(io_, [this] { return !outages_.empty(); }));
  follower_.reset();
  EXPECT_FALSE(end_.has_value());
}

}  // namespace
}  // namespace muster::rendezvous
