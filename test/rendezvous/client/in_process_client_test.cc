// The contract of RendezvousClient, as kept by the client without a network.
#include "rendezvous/client/in_process_client.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/rendezvous/support/join_request.h"
#include "test/rendezvous/support/recording_listener.h"
#include "test/support/run_until.h"

namespace muster::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class InProcessClientTest : public ::testing::Test {
 protected:
  // Runs what is on the loop.
  void Poll() {
    io_.restart();
    io_.poll();
  }

  RoundId Round() const { return a_heard_.Last<Assignment>()->id(); }

  boost::asio::io_context io_;
  DaemonLoop daemon_loop_{io_, nullptr};
  RecordingListener a_heard_, b_heard_;
  std::unique_ptr<InProcessClient> a_ =
      std::make_unique<InProcessClient>(io_, daemon_loop_, a_heard_);
  std::unique_ptr<InProcessClient> b_ =
      std::make_unique<InProcessClient>(io_, daemon_loop_, b_heard_);
};

TEST_F(InProcessClientTest, NothingIsHeardFromInsideAMethod) {
  a_->Join(RequestFor(1, 1));
  EXPECT_THAT(a_heard_.log, IsEmpty());
  Poll();
  EXPECT_THAT(a_heard_.log, ElementsAre(StartsWith("welcome"), StartsWith("start round 0")));
  a_->Say(WorkersStarted{Round()});
  a_->Say(WorkersExited{Round(), {.succeeded = true}});
  EXPECT_THAT(a_heard_.log, ElementsAre(StartsWith("welcome"), StartsWith("start round 0")));
  Poll();
  EXPECT_THAT(a_heard_.log.back(), StartsWith("verdict: job 'job' succeeded"));
}

TEST_F(InProcessClientTest, NoLeaseRunsForAnAgentInTheSameProcess) {
  a_->Join(RequestFor(1, 1));
  Poll();
  ASSERT_NE(a_heard_.Last<Welcome>(), nullptr);
  EXPECT_EQ(a_heard_.Last<Welcome>()->lease, Duration::zero());
  EXPECT_EQ(a_heard_.Last<Welcome>()->keep_alive, Duration::zero());
}

TEST_F(InProcessClientTest, LeaveIsToldFromTheLoopAndIsTheLastThing) {
  a_->Join(RequestFor(1, 2));
  b_->Join(RequestFor(2, 2));
  bool left = false;
  // The Assignment is on its way.
  a_->Leave("interrupted by SIGTERM", [&] { left = true; });
  EXPECT_FALSE(left);
  EXPECT_EQ(daemon_loop_.agent_count(), 1);
  Poll();
  EXPECT_TRUE(left);
  EXPECT_THAT(a_heard_.log, IsEmpty());
  EXPECT_THAT(b_heard_.log.back(), "stop round 0: node host1 left: interrupted by SIGTERM");
}

TEST_F(InProcessClientTest, ClientThatIsDestroyedIsLost) {
  a_->Join(RequestFor(1, 2));
  b_->Join(RequestFor(2, 2));
  Poll();
  a_.reset();
  Poll();
  EXPECT_THAT(b_heard_.log.back(), "stop round 0: node host1 was lost: its agent ended");
  EXPECT_EQ(daemon_loop_.agent_count(), 1);
}

TEST_F(InProcessClientTest, ClientThatHasLeftIsNotLostWhenItIsDestroyed) {
  a_->Join(RequestFor(1, 1));
  a_->Leave("", [] {});
  a_.reset();
  Poll();
  EXPECT_EQ(daemon_loop_.agent_count(), 0);
}

TEST_F(InProcessClientTest, DirectivesOnTheirWayDieWithTheClient) {
  a_->Join(RequestFor(1, 1));
  a_.reset();
  Poll();
  EXPECT_THAT(a_heard_.log, IsEmpty());
}

TEST_F(InProcessClientTest, ListenerMayDestroyTheClientFromWithin) {
  struct Impatient final : RendezvousClient::Listener {
    void OnDirective(const Directive&) override {
      ++heard;
      client.reset();
    }
    void OnTrouble(const std::string&) override {}
    void OnOutOfTouch(const std::string&) override {}
    void OnBackInTouch(Duration) override {}
    void OnDeadline(std::optional<TimePoint>) override {}
    void OnFenced(const std::string&) override {}
    void OnLost(const absl::Status&) override {}
    std::unique_ptr<InProcessClient> client;
    int heard = 0;
  } impatient;
  impatient.client = std::make_unique<InProcessClient>(io_, daemon_loop_, impatient);
  impatient.client->Join(RequestFor(1, 1));
  Poll();
  EXPECT_EQ(impatient.heard, 1);
}

TEST_F(InProcessClientTest, RefusedNodeIsToldWhy) {
  a_->Join(RequestFor(1, 2));
  b_->Join(RequestFor(2, 3));
  Poll();
  EXPECT_THAT(b_heard_.log, ElementsAre(StartsWith("refused: node host2 asks for --nnodes=3")));
}

TEST_F(InProcessClientTest, FailureBringsTheNextRoundWithinTheBudget) {
  JoinRequest request = RequestFor(1, 1);
  request.settings.max_restarts = 1;
  a_->Join(request);
  Poll();
  a_->Say(WorkersExited{Round(),
                        {.failure = WorkerFailure{.host = "host1", .what = "exited with code 3"}}});
  Poll();
  EXPECT_THAT(a_heard_.log.back(), StartsWith("stop round 0: "));
  request.after = 0;
  a_->Join(request);
  Poll();
  EXPECT_THAT(a_heard_.log.back(), StartsWith("start round 1: "));
  EXPECT_EQ(a_heard_.Last<Assignment>()->restart_count, 1);
  a_->Say(WorkersExited{Round(),
                        {.failure = WorkerFailure{.host = "host1", .what = "exited with code 4"}}});
  Poll();
  ASSERT_NE(a_heard_.Last<Verdict>(), nullptr);
  EXPECT_EQ(a_heard_.Last<Verdict>()->root_cause->what, "exited with code 4");
}

TEST_F(InProcessClientTest, LeavingStopsTheOthersBeforeTheGoodbye) {
  a_->Join(RequestFor(1, 2));
  b_->Join(RequestFor(2, 2));
  Poll();
  a_->Say(Leaving{"interrupted by SIGINT"});
  Poll();
  EXPECT_THAT(b_heard_.log.back(), "stop round 0: node host1 is leaving: interrupted by SIGINT");
  EXPECT_FALSE(a_heard_.Heard("stop"));
}

TEST_F(InProcessClientTest, WhatRanksTellIsToldOnceForManySteps) {
  a_->Join(RequestFor(1, 1));
  Poll();
  a_heard_.progress = {Round(), {{.local_rank = 0, .step = 12, .timed_steps = 12}}};
  for (int step = 0; step < 1000; ++step) a_->ProgressMade();
  ASSERT_TRUE(test::RunUntil(io_, [&] {
    return !daemon_loop_.Describe("job")->nodes[0].ranks.empty() && a_heard_.Heard("heard");
  }));
  EXPECT_EQ(daemon_loop_.Describe("job")->nodes[0].ranks[0].told.step, 12);
  EXPECT_EQ(daemon_loop_.Describe("job")->nodes[0].heard_ago, std::nullopt)
      << "it cannot fall silent";
  EXPECT_EQ(a_heard_.Count("heard"), 1);
}

}  // namespace
}  // namespace muster::rendezvous
