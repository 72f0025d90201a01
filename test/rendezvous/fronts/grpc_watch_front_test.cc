// The call Watch: who receives what when, the limits on what a daemon keeps for a client, and what
// cannot disturb it.
#include "rendezvous/fronts/grpc_watch_front.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>
#include <boost/asio/post.hpp>

#include "absl/strings/str_cat.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/client/daemon_channel.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/net/client_stream.h"
#include "rendezvous/server/server.h"
#include "rendezvous/wire/wire.h"
#include "test/rendezvous/support/join_request.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using test::RunUntil;
using ::testing::HasSubstr;

// A client that calls and reads no updates, until Read makes it read one.
class Deaf final : public grpc::ClientReadReactor<v1::WatchUpdate> {
 public:
  Deaf(boost::asio::io_context& io, std::shared_ptr<grpc::Channel> channel)
      : io_(io), stub_(v1::Rendezvous::NewStub(std::move(channel))) {
    stub_->async()->Watch(&context_, &request_, this);
    AddHold();
    StartCall();
  }
  // Without reading, the client's end of the call does not notice that the other one is over.
  void Read() { StartRead(&update_); }
  void OnReadDone(bool ok) override {
    has_read_ = ok;
    RemoveHold();
    if (ok) context_.TryCancel();
  }
  void OnDone(const grpc::Status& status) override {
    boost::asio::post(io_, [this, status] { status_ = status; });
  }
  const std::optional<grpc::Status>& status() const { return status_; }
  // Once it is over.
  bool has_read() const { return has_read_; }

 private:
  boost::asio::io_context& io_;
  const std::unique_ptr<v1::Rendezvous::Stub> stub_;
  grpc::ClientContext context_;
  v1::WatchRequest request_;
  v1::WatchUpdate update_;
  bool has_read_ = false;
  std::optional<grpc::Status> status_;
};

class GrpcWatchFrontTest : public ::testing::Test {
 protected:
  // A call, and the updates it received.
  struct Call {
    ClientStream<void, v1::WatchUpdate>::Owner stream;
    std::deque<v1::WatchUpdate> updates;
    std::optional<grpc::Status> status;

    bool over() const { return status.has_value(); }
    const v1::WatchUpdate& last() const { return updates.back(); }
  };

  GrpcWatchFrontTest() {
    EXPECT_TRUE(server_->Listen({"127.0.0.1", 0}, Credentials::Plaintext()).ok());
    target_ = absl::StrCat("dns:///127.0.0.1:", server_->port());
    channel_ = Channel();
  }
  ~GrpcWatchFrontTest() override {
    for (const auto& call : calls_) call->stream.reset();
    server_.reset();
    // Until gRPC has released every stream.
    io_.restart();
    io_.run();
  }

  std::shared_ptr<grpc::Channel> Channel() const {
    return OpenChannel(target_, Credentials::Plaintext(), {.max_message_bytes = 64 << 20});
  }

  Call& Watch(const std::string& run_id = "", std::shared_ptr<grpc::Channel> channel = nullptr) {
    Call& call = *calls_.emplace_back(std::make_unique<Call>());
    call.stream = ClientStream<void, v1::WatchUpdate>::Make(io_);
    v1::WatchRequest request;
    request.set_run_id(run_id);
    v1::Rendezvous::NewStub(channel == nullptr ? channel_ : std::move(channel))
        ->async()
        ->Watch(&call.stream->context(), &request, call.stream.get());
    call.stream->Start(
        {.on_read = [&call](const v1::WatchUpdate& update) { call.updates.push_back(update); },
         .on_done = [&call](const grpc::Status& status) { call.status = status; }});
    return call;
  }
  bool Told(const Call& call, std::size_t updates) {
    return RunUntil(io_, [&] { return call.updates.size() >= updates; });
  }
  bool Over(const Call& call) {
    return RunUntil(io_, [&] { return call.over(); });
  }

  // An agent of the job, which needs `nodes` nodes.
  AgentId Join(const std::string& run_id, int index = 1, int nodes = 1, std::size_t ballast = 0) {
    DaemonLoop& daemon_loop = server_->daemon_loop();
    const AgentId agent = daemon_loop.Attach([this, run_id](const Directive& directive) {
      if (const auto* const assignment = std::get_if<Assignment>(&directive)) {
        rounds_[run_id] = assignment->id();
      }
    });
    JoinRequest request = RequestFor(index, nodes);
    request.run_id = run_id;
    request.settings.lease = Duration::zero();
    request.node.devices.assign(ballast / 1000, std::string(1000, 'x'));
    daemon_loop.Hear(agent, request);
    return agent;
  }
  void Fail(AgentId agent, const std::string& run_id) {
    WorkersOutcome outcome{.failure = WorkerFailure{.rank = 0, .what = "exited with code 3"}};
    server_->daemon_loop().Hear(agent, WorkersExited{rounds_[run_id], outcome});
  }
  void Leave(AgentId agent) {
    server_->daemon_loop().Hear(agent, Goodbye{});
    server_->daemon_loop().Detach(agent);
  }

  boost::asio::io_context io_;
  std::unique_ptr<Server> server_ = std::make_unique<Server>(io_);
  std::string target_;
  std::shared_ptr<grpc::Channel> channel_;
  std::map<std::string, RoundId> rounds_;
  std::vector<std::unique_ptr<Call>> calls_;
};

TEST_F(GrpcWatchFrontTest, JobsAreToldAtOnceAndAgainWhenSomethingHasChanged) {
  Call& call = Watch();
  ASSERT_TRUE(Told(call, 1));
  EXPECT_EQ(call.last().jobs_size(), 0);
  EXPECT_FALSE(call.last().unchanged());
  Join("b");
  ASSERT_TRUE(Told(call, 2));
  ASSERT_EQ(call.last().jobs_size(), 1);
  EXPECT_EQ(call.last().jobs(0).run_id(), "b");
  EXPECT_EQ(call.last().jobs(0).state(), v1::JobDescription::RUNNING);
  EXPECT_FALSE(call.last().unchanged());
  Join("a");
  ASSERT_TRUE(Told(call, 3));
  ASSERT_EQ(call.last().jobs_size(), 2);
  EXPECT_EQ(call.last().jobs(0).run_id(), "a");
}

TEST_F(GrpcWatchFrontTest, AStormOfChangesIsOneUpdate) {
  Call& call = Watch();
  ASSERT_TRUE(Told(call, 1));
  for (int i = 1; i <= 100; ++i) Join("job", i, 100);
  ASSERT_TRUE(Told(call, 2));
  ASSERT_EQ(call.last().jobs_size(), 1);
  EXPECT_EQ(call.last().jobs(0).nodes_size(), 100);
}

TEST_F(GrpcWatchFrontTest, WithoutAChangeItIsSaidThatThereIsNone) {
  Call& call = Watch();
  ASSERT_TRUE(Told(call, 2));
  EXPECT_TRUE(call.last().unchanged());
}

// In `muster top` the ranks' steps stood still for ten seconds at a time.
TEST_F(GrpcWatchFrontTest, HowFarRanksHaveComeIsToldAlthoughNothingHasChanged) {
  const AgentId agent = Join("job");
  server_->daemon_loop().Hear(agent, WorkersStarted{rounds_["job"]});
  const auto beat = [&](std::int64_t step) {
    server_->daemon_loop().Hear(agent, KeepAlive{.progress = {rounds_["job"], {{.step = step}}}});
  };
  beat(12);
  Call& call = Watch("job");
  const auto step = [&] {
    const JobSnapshot job = FromWire(call.last().jobs(0));
    return job.nodes.front().ranks.front().told.step.value_or(0);
  };
  ASSERT_TRUE(Told(call, 1));
  EXPECT_EQ(step(), 12);
  beat(13);
  ASSERT_TRUE(RunUntil(io_, [&] { return step() == 13; }));
  EXPECT_TRUE(call.last().unchanged());
}

TEST_F(GrpcWatchFrontTest, OneJobIsWatchedToItsEnd) {
  const AgentId agent = Join("job");
  Join("other");
  Call& all = Watch();
  Call& one = Watch("job");
  ASSERT_TRUE(Told(all, 1) && Told(one, 1));
  ASSERT_EQ(one.last().jobs_size(), 1);
  EXPECT_EQ(one.last().jobs(0).run_id(), "job");
  Fail(agent, "job");
  Leave(agent);
  ASSERT_TRUE(Over(one));
  EXPECT_TRUE(one.status->ok()) << one.status->error_message();
  ASSERT_EQ(one.last().ended_size(), 1);
  // It is still shown, with its rounds.
  ASSERT_EQ(one.last().jobs_size(), 1);
  EXPECT_EQ(one.last().jobs(0).state(), v1::JobDescription::ENDED);
  EXPECT_EQ(one.last().ended(0).run_id(), "job");
  EXPECT_EQ(one.last().ended(0).kind(), v1::Verdict::WORKER_FAILED);
  EXPECT_THAT(one.last().ended(0).sentence(), HasSubstr("exited with code 3"));
  ASSERT_TRUE(Told(all, 2));
  ASSERT_EQ(all.last().jobs_size(), 2);
  EXPECT_EQ(all.last().jobs(0).run_id(), "other");
  EXPECT_EQ(all.last().jobs(1).run_id(), "job");
  ASSERT_EQ(all.last().ended_size(), 1);
  EXPECT_EQ(all.last().ended(0).run_id(), "job");
}

TEST_F(GrpcWatchFrontTest, WhoComesAfterTheEndIsToldHowItWas) {
  const AgentId agent = Join("job");
  Fail(agent, "job");
  // While its agents leave, and once it is forgotten.
  Call& soon = Watch("job");
  ASSERT_TRUE(Over(soon));
  EXPECT_TRUE(soon.status->ok());
  ASSERT_EQ(soon.last().jobs_size(), 1);
  EXPECT_EQ(soon.last().jobs(0).state(), v1::JobDescription::ENDED);
  ASSERT_EQ(soon.last().ended_size(), 1);
  Leave(agent);
  Call& late = Watch("job");
  ASSERT_TRUE(Over(late));
  EXPECT_TRUE(late.status->ok());
  ASSERT_EQ(late.last().ended_size(), 1);
  EXPECT_THAT(late.last().ended(0).sentence(), HasSubstr("exited with code 3"));
}

// The end of the previous job, not yet sent, would have been taken for that of the new one.
TEST_F(GrpcWatchFrontTest, JobThatTakesTheNameOfOneThatHasJustEndedIsWatched) {
  Call& all = Watch();
  ASSERT_TRUE(Told(all, 1));
  const AgentId agent = Join("job");
  Fail(agent, "job");
  Leave(agent);
  Join("job");
  Call& next = Watch("job");
  ASSERT_TRUE(Told(all, 2));
  ASSERT_EQ(all.last().ended_size(), 1);
  Join("job", 2);
  ASSERT_TRUE(Told(next, 2));
  EXPECT_FALSE(next.over());
  EXPECT_EQ(next.last().ended_size(), 0);
}

TEST_F(GrpcWatchFrontTest, JobThatIsNotHereIsNotFound) {
  Call& call = Watch("no\nsuch\x1bjob");
  ASSERT_TRUE(Over(call));
  EXPECT_EQ(call.status->error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(call.status->error_message(), "no job 'no such?job' here");
}

TEST_F(GrpcWatchFrontTest, DaemonThatEndsTellsWhatIsNewAndThatItEnds) {
  const AgentId agent = Join("job");
  Call& all = Watch();
  Call& one = Watch("job");
  ASSERT_TRUE(Told(all, 1) && Told(one, 1));
  Fail(agent, "job");
  Leave(agent);
  bool stopped = false;
  server_->Stop([&stopped] { stopped = true; });
  ASSERT_TRUE(Over(all) && Over(one));
  EXPECT_EQ(all.status->error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(all.status->error_message(), "the daemon is stopping");
  ASSERT_EQ(all.last().ended_size(), 1);
  EXPECT_TRUE(one.status->ok());
  ASSERT_EQ(one.last().ended_size(), 1);
  EXPECT_TRUE(RunUntil(io_, [&] { return stopped; }));
}

// "muster top kept showing outdated state after the leader had been stalled."
TEST_F(GrpcWatchFrontTest, WhoWatchesADaemonThatLeadsNoLongerIsToldSo) {
  const auto leads = std::make_shared<bool>(true);
  server_->daemon_loop().LeadBy([leads] { return *leads; });
  Join("job");
  Call& all = Watch();
  Call& one = Watch("job");
  ASSERT_TRUE(Told(all, 1) && Told(one, 1));
  *leads = false;
  // Neither changes nor the current state are sent.
  server_->changes().Changed("", {.run_id = "job", .text = "something"});
  Call& late = Watch();
  Call& late_one = Watch("job");
  for (const Call* const call : {&all, &one, &late, &late_one}) {
    ASSERT_TRUE(Over(*call));
    EXPECT_EQ(call->status->error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_THAT(call->status->error_message(), HasSubstr("this daemon is no longer the leader"));
  }
  EXPECT_EQ(all.updates.size(), 1u);
  EXPECT_EQ(one.updates.size(), 1u);
  EXPECT_TRUE(late.updates.empty());
  EXPECT_TRUE(late_one.updates.empty());
}

// The updates that a client did not read would have been kept for as long as it liked.
TEST_F(GrpcWatchFrontTest, WhoDoesNotReadIsCutOffAndDelaysNobody) {
  Join("large", 1, 1, 60'000);
  // More than fits into the buffers between the two.
  for (int i = 2; i < 40; ++i) Join(absl::StrCat("large", i), i, 1, 60'000);
  Deaf deaf(io_, Channel());
  Call& call = Watch();
  ASSERT_TRUE(Told(call, 1));
  for (std::size_t i = 0; i < 5; ++i) {
    Join(absl::StrCat("more", i), 1, 1, 60'000);
    ASSERT_TRUE(Told(call, i + 2));
  }
  // The update that says that nothing has changed comes after the deaf client's time is up.
  ASSERT_TRUE(RunUntil(io_, [&] { return call.last().unchanged(); }));
  deaf.Read();
  ASSERT_TRUE(RunUntil(io_, [&] { return deaf.status().has_value(); }));
  EXPECT_FALSE(deaf.has_read());
  EXPECT_EQ(deaf.status()->error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_FALSE(call.over());
}

TEST_F(GrpcWatchFrontTest, DaemonDoesNotWaitForOneWhoDoesNotRead) {
  for (int i = 1; i < 40; ++i) Join(absl::StrCat("large", i), i, 1, 60'000);
  Deaf deaf(io_, Channel());
  Call& call = Watch();
  ASSERT_TRUE(Told(call, 1));
  bool stopped = false;
  server_->Stop([&stopped] { stopped = true; });
  EXPECT_TRUE(RunUntil(io_, [&] { return stopped; }));
  deaf.Read();
  EXPECT_TRUE(RunUntil(io_, [&] { return deaf.status().has_value(); }));
}

TEST_F(GrpcWatchFrontTest, ACallMayEndAtAnyMoment) {
  int turns = 0;
  for (int i = 0; i < 200; ++i) {
    Call& call = Watch(i % 3 == 0 ? "none" : "");
    const AgentId agent = Join(absl::StrCat("job", i));
    // This many turns of the loop later.
    turns = (turns + 7) % 23;
    for (int turn = 0; turn < turns; ++turn) io_.run_one_for(std::chrono::milliseconds(1));
    call.stream.reset();
    Leave(agent);
  }
  Call& call = Watch();
  ASSERT_TRUE(Told(call, 1));
  Join("last");
  ASSERT_TRUE(Told(call, 2));
}

TEST_F(GrpcWatchFrontTest, ServerMayEndWhileCallsComeAndGo) {
  for (int i = 0; i < 50; ++i) {
    Call& call = Watch();
    if (i % 2 == 0) call.stream.reset();
    io_.poll_one();
  }
  bool stopped = false;
  server_->Stop([&stopped] { stopped = true; });
  EXPECT_TRUE(RunUntil(io_, [&] { return stopped; }));
}

TEST_F(GrpcWatchFrontTest, ThereAreNoMoreThanTheLimit) {
  std::shared_ptr<grpc::Channel> channel;
  for (std::uint64_t i = 0; i < limits::kWatchers.most; ++i) {
    // One connection may not have more calls than gRPC allows.
    if (i % 100 == 0) channel = Channel();
    Watch("", channel);
  }
  ASSERT_TRUE(RunUntil(io_, [&] {
    return std::all_of(calls_.begin(), calls_.end(),
                       [](const auto& call) { return !call->updates.empty(); });
  }));
  Call& more = Watch("", Channel());
  ASSERT_TRUE(Over(more));
  EXPECT_EQ(more.status->error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(more.status->error_message(), "256 calls watch jobs already, which is the limit");
  // There is room once the daemon has heard that one has gone.
  calls_.front()->stream.reset();
  bool has_room = false;
  for (int tries = 0; tries < 1000 && !has_room; ++tries) {
    Call& next = Watch("", Channel());
    ASSERT_TRUE(RunUntil(io_, [&] { return next.over() || !next.updates.empty(); }));
    has_room = !next.updates.empty();
  }
  EXPECT_TRUE(has_room);
}

}  // namespace
}  // namespace muster::rendezvous
