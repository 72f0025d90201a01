// The call Watch: who is told what when, to whom a daemon owes nothing, and what cannot disturb it.
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
#include "rendezvous/client/watch_stream.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/server.h"
#include "rendezvous/wire/wire.h"
#include "test/rendezvous/support/join_request.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using test::RunUntil;
using ::testing::HasSubstr;

// Whoever asks and takes nothing of what he is told, until he is made to read once.
class Deaf final : public grpc::ClientReadReactor<v1::WatchUpdate> {
 public:
  Deaf(boost::asio::io_context& io, std::shared_ptr<grpc::Channel> channel)
      : io_(io), stub_(v1::Rendezvous::NewStub(std::move(channel))) {
    stub_->async()->Watch(&context_, &request_, this);
    AddHold();
    StartCall();
  }
  // Without that his end of the call does not notice that the other one is over.
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
  // A call, and what it was told.
  struct Call {
    WatchStream* stream = nullptr;
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
    for (const auto& call : calls_) Abandon(*call);
    server_.reset();
    // Until gRPC has let go of every stream.
    io_.restart();
    io_.run();
  }

  std::shared_ptr<grpc::Channel> Channel() const {
    return OpenChannel(target_, Credentials::Plaintext(), {.max_message_bytes = 64 << 20});
  }

  Call& Watch(const std::string& run_id = "", std::shared_ptr<grpc::Channel> channel = nullptr) {
    Call& call = *calls_.emplace_back(std::make_unique<Call>());
    call.stream = new WatchStream(
        io_, v1::Rendezvous::NewStub(channel == nullptr ? channel_ : std::move(channel)), run_id,
        {.on_update = [&call](const v1::WatchUpdate& update) { call.updates.push_back(update); },
         .on_done =
             [&call](const grpc::Status& status) {
               call.stream = nullptr;
               call.status = status;
             }});
    return call;
  }
  static void Abandon(Call& call) {
    if (call.stream != nullptr) std::exchange(call.stream, nullptr)->Abandon();
  }
  bool Told(const Call& call, std::size_t updates) {
    return RunUntil(io_, [&] { return call.updates.size() >= updates; });
  }
  bool Over(const Call& call) {
    return RunUntil(io_, [&] { return call.over(); });
  }

  // An agent of the job, which needs `nodes` nodes.
  AgentId Join(const std::string& run_id, int index = 1, int nodes = 1, std::size_t ballast = 0) {
    Driver& driver = server_->driver();
    const AgentId agent = driver.Attach([this, run_id](const Directive& directive) {
      if (const auto* const assignment = std::get_if<Assignment>(&directive)) {
        rounds_[run_id] = assignment->id();
      }
    });
    JoinRequest request = RequestFor(index, nodes);
    request.run_id = run_id;
    request.settings.lease = Duration::zero();
    request.node.devices.assign(ballast / 1000, std::string(1000, 'x'));
    driver.Hear(agent, request);
    return agent;
  }
  void Fail(AgentId agent, const std::string& run_id) {
    WorkersOutcome outcome{.failure = WorkerFailure{.rank = 0, .what = "exited with code 3"}};
    server_->driver().Hear(agent, WorkersExited{rounds_[run_id], outcome});
  }
  void Leave(AgentId agent) {
    server_->driver().Hear(agent, Goodbye{});
    server_->driver().Detach(agent);
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
  server_->driver().Hear(agent, WorkersStarted{rounds_["job"]});
  const auto beat = [&](std::int64_t step) {
    server_->driver().Hear(agent, KeepAlive{.progress = {rounds_["job"], {{.step = step}}}});
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

// The end of the job before it, which had not been told yet, would have been taken for its own.
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

// "muster top went on showing what had been, after the leader had stood still."
TEST_F(GrpcWatchFrontTest, WhoWatchesADaemonThatLeadsNoLongerIsToldSo) {
  const auto leads = std::make_shared<bool>(true);
  server_->driver().LeadBy([leads] { return *leads; });
  Join("job");
  Call& all = Watch();
  Call& one = Watch("job");
  ASSERT_TRUE(Told(all, 1) && Told(one, 1));
  *leads = false;
  // Neither what changes is told, nor what is.
  server_->changes().Changed("", {.run_id = "job", .text = "something"});
  Call& late = Watch();
  Call& late_one = Watch("job");
  for (const Call* const call : {&all, &one, &late, &late_one}) {
    ASSERT_TRUE(Over(*call));
    EXPECT_EQ(call->status->error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_THAT(call->status->error_message(), HasSubstr("this daemon leads no longer"));
  }
  EXPECT_EQ(all.updates.size(), 1u);
  EXPECT_EQ(one.updates.size(), 1u);
  EXPECT_TRUE(late.updates.empty());
  EXPECT_TRUE(late_one.updates.empty());
}

// His updates, which he did not take, would have been kept for him as long as he liked.
TEST_F(GrpcWatchFrontTest, WhoDoesNotReadIsCutOffAndDelaysNobody) {
  Join("large", 1, 1, 60'000);
  // More than fits into what lies between the two.
  for (int i = 2; i < 40; ++i) Join(absl::StrCat("large", i), i, 1, 60'000);
  Deaf deaf(io_, Channel());
  Call& call = Watch();
  ASSERT_TRUE(Told(call, 1));
  for (std::size_t i = 0; i < 5; ++i) {
    Join(absl::StrCat("more", i), 1, 1, 60'000);
    ASSERT_TRUE(Told(call, i + 2));
  }
  // It is said that nothing has changed later than he has been waited for.
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
    // So many turns of the loop later.
    turns = (turns + 7) % 23;
    for (int turn = 0; turn < turns; ++turn) io_.run_one_for(std::chrono::milliseconds(1));
    Abandon(call);
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
    if (i % 2 == 0) Abandon(call);
    io_.poll_one();
  }
  bool stopped = false;
  server_->Stop([&stopped] { stopped = true; });
  EXPECT_TRUE(RunUntil(io_, [&] { return stopped; }));
}

TEST_F(GrpcWatchFrontTest, ThereAreNoMoreThanTheLimit) {
  std::shared_ptr<grpc::Channel> channel;
  for (std::uint64_t i = 0; i < limits::kWatchers.most; ++i) {
    // Over one connection there may be no more calls than gRPC takes.
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
  Abandon(*calls_.front());
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
