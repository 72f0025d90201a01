// What workers print, from an agent through a daemon to a reader: over real local connections, on
// one loop and one thread.
#include "rendezvous/client/log_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "absl/strings/str_cat.h"
#include "rendezvous/client/in_process_client.h"
#include "rendezvous/client/rendezvous_client.h"
#include "rendezvous/server/server.h"
#include "test/rendezvous/support/join_request.h"
#include "test/rendezvous/support/recording_listener.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using test::RunUntil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An agent that brings what the test gives it, as fast as it is taken.
class BringingAgent : public RecordingListener {
 public:
  void OnDirective(const Directive& directive) override {
    const auto* wanted = std::get_if<LogWanted>(&directive);
    if (wanted == nullptr) return RecordingListener::OnDirective(directive);
    asked = *wanted;
    if (is_silent) return;
    delivery = client->DeliverLog(wanted->delivery, {.on_ready = [this] { Bring(); },
                                                     .on_over =
                                                         [this] {
                                                           is_over = true;
                                                           delivery.reset();
                                                         }});
  }
  void Bring() {
    if (is_endless) {
      ++sent;
      return delivery->Send(LogText{.bytes = std::string(60'000, 'x')});
    }
    if (!to_bring.empty()) {
      delivery->Send(LogText{.rank = 0, .bytes = to_bring.front()});
      return to_bring.pop_front();
    }
    if (ends) delivery->Finish();
  }

  std::unique_ptr<RendezvousClient> client;
  std::unique_ptr<LogDelivery> delivery;
  std::optional<LogWanted> asked;
  std::deque<std::string> to_bring;
  bool ends = true;
  bool is_endless = false;
  bool is_silent = false;
  bool is_over = false;
  int sent = 0;
};

class LogReaderTest : public ::testing::Test {
 protected:
  LogReaderTest() {
    EXPECT_TRUE(server_->Listen({"127.0.0.1", 0}, Credentials::Plaintext()).ok());
    endpoint_ = {"127.0.0.1", server_->port()};
  }
  ~LogReaderTest() override {
    reader_.reset();
    agent_.delivery.reset();
    agent_.client.reset();
    server_.reset();
    // Until gRPC has let go of every stream.
    io_.restart();
    io_.run();
  }

  void StartJob() {
    agent_.client = MakeGrpcClient(io_, {.endpoint = endpoint_}, agent_);
    Join();
  }
  void StartJobInProcess() {
    agent_.client = std::make_unique<InProcessClient>(io_, server_->daemon_loop(), agent_);
    Join();
  }
  void Join() {
    JoinRequest request = RequestFor(1, 1);
    request.node.delivers_logs = true;
    agent_.client->Join(request);
    ASSERT_TRUE(RunUntil(io_, [this] { return agent_.Last<Assignment>() != nullptr; }));
  }

  void Read(const LogExtent& extent = {}) {
    reader_.emplace(io_, DaemonOptions{.endpoint = endpoint_},
                    LogRequest{.run_id = "job", .extent = extent},
                    LogReader::Handlers{.on_part = [this](const LogPart& part) { Take(part); },
                                        .on_end = [this](const absl::Status& s) { end_ = s; }});
  }
  void Take(const LogPart& part) {
    if (const auto* text = std::get_if<LogText>(&part)) told_ += text->bytes;
    if (const auto* notice = std::get_if<LogNotice>(&part)) told_ += notice->sentence + "\n";
  }
  bool Ends() {
    return RunUntil(io_, [this] { return end_.has_value(); });
  }

  boost::asio::io_context io_;
  std::unique_ptr<Server> server_ = std::make_unique<Server>(io_);
  Endpoint endpoint_;
  BringingAgent agent_;
  std::optional<LogReader> reader_;
  std::string told_;
  std::optional<absl::Status> end_;
};

TEST_F(LogReaderTest, WhatTheAgentBringsIsRead) {
  StartJob();
  agent_.to_bring = {"one\n", "two\n"};
  Read({.since = std::chrono::seconds(90), .tail = 5});
  ASSERT_TRUE(Ends());
  EXPECT_TRUE(end_->ok()) << *end_;
  EXPECT_EQ(told_, "one\ntwo\n");
  EXPECT_EQ(agent_.asked->extent, (LogExtent{.since = std::chrono::seconds(90), .tail = 5}));
  EXPECT_EQ(agent_.asked->round, agent_.Last<Assignment>()->id());
  EXPECT_TRUE(RunUntil(io_, [this] { return agent_.is_over; }));
}

TEST_F(LogReaderTest, SoItIsOfTheAgentThatHostsTheDaemon) {
  StartJobInProcess();
  agent_.to_bring = {"one\n", "two\n"};
  Read();
  ASSERT_TRUE(Ends());
  EXPECT_TRUE(end_->ok()) << *end_;
  EXPECT_EQ(told_, "one\ntwo\n");
  EXPECT_TRUE(RunUntil(io_, [this] { return agent_.is_over; }));
}

// "less was open over night on the log of a rank, and in the morning the daemon had 8 GB."
TEST_F(LogReaderTest, ReaderWhoDoesNotReadHoldsUpHisDeliveryAndNobodyElse) {
  StartJob();
  agent_.is_endless = true;
  Read();
  ASSERT_TRUE(RunUntil(io_, [this] { return told_.size() > 1'000'000; }));
  reader_->Pause();
  // Until nothing moves: whoever else asks is answered meanwhile, as the second reader is.
  int before = 0;
  ASSERT_TRUE(RunUntil(io_, [&] {
    if (std::exchange(before, agent_.sent) != agent_.sent) return false;
    std::optional<absl::Status> other;
    LogReader elsewhere(io_, {.endpoint = endpoint_}, {.run_id = "other"},
                        {.on_part = [](const LogPart&) {},
                         .on_end = [&other](const absl::Status& status) { other = status; }});
    EXPECT_TRUE(RunUntil(io_, [&other] { return other.has_value(); }));
    EXPECT_EQ(other->code(), absl::StatusCode::kNotFound);
    return before == agent_.sent;
  }));
  EXPECT_LT(static_cast<std::size_t>(agent_.sent) * 60'000, told_.size() + 1'500'000);
  const std::size_t told = told_.size();
  reader_->Resume();
  EXPECT_TRUE(RunUntil(io_, [&] { return told_.size() > told + 5'000'000; }));
  EXPECT_EQ(told_.find_first_not_of('x'), std::string::npos);
}

TEST_F(LogReaderTest, ReaderWhoIsGoneIsBroughtNothingMore) {
  StartJob();
  agent_.ends = false;
  agent_.to_bring = {"one\n"};
  Read({.follow = true});
  ASSERT_TRUE(RunUntil(io_, [this] { return told_ == "one\n"; }));
  reader_.reset();
  EXPECT_TRUE(RunUntil(io_, [this] { return agent_.is_over; }));
}

TEST_F(LogReaderTest, AgentThatCutsItsDeliveryOffIsNamed) {
  StartJob();
  agent_.ends = false;
  agent_.to_bring = {"one\n"};
  Read();
  ASSERT_TRUE(RunUntil(io_, [this] { return told_ == "one\n"; }));
  agent_.delivery.reset();
  ASSERT_TRUE(Ends());
  EXPECT_EQ(told_, "one\nhost host1: the connection to its agent broke while its log was read\n");
  EXPECT_EQ(end_->code(), absl::StatusCode::kDataLoss);
}

TEST_F(LogReaderTest, DaemonThatEndsEndsBoth) {
  StartJob();
  agent_.ends = false;
  agent_.to_bring = {"one\n"};
  Read({.follow = true});
  ASSERT_TRUE(RunUntil(io_, [this] { return told_ == "one\n"; }));
  bool stopped = false;
  server_->Stop([&stopped] { stopped = true; });
  ASSERT_TRUE(Ends());
  EXPECT_EQ(end_->code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(end_->message()), HasSubstr("the daemon stopped"));
  EXPECT_TRUE(RunUntil(io_, [&] { return agent_.is_over && stopped; }));
}

TEST_F(LogReaderTest, WhatNobodyReadsIsNotBrought) {
  StartJob();
  bool is_over = false;
  const auto delivery =
      agent_.client->DeliverLog(12345, {.on_ready = [] {}, .on_over = [&] { is_over = true; }});
  EXPECT_TRUE(RunUntil(io_, [&] { return is_over; }));
}

TEST_F(LogReaderTest, DaemonThatIsNotThereIsNamed) {
  server_->Stop([] {});
  Read();
  ASSERT_TRUE(Ends());
  EXPECT_EQ(end_->code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(end_->message()), HasSubstr(ToString(endpoint_) + ": "));
}

}  // namespace
}  // namespace muster::rendezvous
