// A Coordinator's metrics: how failures were noticed, how nodes keep their leases, how much output
// was lost, and which limits caused refusals.
#include <chrono>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "rendezvous/core/coordinator.h"
#include "test/rendezvous/support/join_request.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class CoordinatorFiguresTest : public ::testing::Test {
 protected:
  // A job of two nodes whose workers run from 10 s on; their leases are of 3 s.
  void RunTwoNodes() {
    Join(1, TimePoint(seconds(8)));
    Join(2, TimePoint(seconds(9)));
    for (const AgentId agent : {1, 2}) {
      coordinator_.Hear(agent, WorkersStarted{round_}, TimePoint(seconds(10)));
    }
    Take();
  }
  void Join(AgentId agent, TimePoint now, RoundNumber after = kNoRound) {
    JoinRequest request = RequestFor(static_cast<int>(agent), 2);
    request.session = "session" + std::to_string(agent);
    request.settings.max_restarts = 1;
    request.after = after;
    coordinator_.Hear(agent, request, now);
    Take();
  }
  void Fail(AgentId agent, Duration failed_ago, TimePoint now) {
    const WorkerFailure failure{.rank = 0, .exit_code = 3, .what = "exited with code 3"};
    coordinator_.Hear(agent, WorkersExited{round_, {.failure = failure}, failed_ago}, now);
    Take();
  }
  void Beat(AgentId agent, TimePoint now, std::uint64_t lost = 0) {
    coordinator_.Hear(agent, KeepAlive{.number = ++beat_, .log_bytes_lost = lost}, now);
    Take();
  }
  // Keeps the round that starts, and milestones.
  void Take() {
    Outbox outbox = coordinator_.TakeOutbox();
    for (const Outgoing& outgoing : outbox.directives) {
      if (const auto* start = std::get_if<Assignment>(&outgoing.directive())) round_ = start->id();
      if (const auto* refused = std::get_if<Refused>(&outgoing.directive())) refused_ = *refused;
    }
    for (const Transition& transition : outbox.transitions) {
      if (const auto* over = std::get_if<RoundOver>(&transition.milestone)) over_.push_back(*over);
      if (const auto* runs = std::get_if<RoundRuns>(&transition.milestone)) runs_.push_back(*runs);
      if (const auto* ended = std::get_if<JobEnded>(&transition.milestone)) ended_ = *ended;
    }
  }

  Coordinator coordinator_{Coordinator::Options{.max_jobs = 1}};
  RoundId round_;
  std::int64_t beat_ = 0;
  Refused refused_;
  std::vector<RoundOver> over_;
  std::vector<RoundRuns> runs_;
  std::optional<JobEnded> ended_;
};

TEST_F(CoordinatorFiguresTest, RestartIsOverWhenAllWorkersOfALaterRoundHaveStarted) {
  RunTwoNodes();
  ASSERT_EQ(runs_.size(), 1u);
  EXPECT_EQ(runs_[0].recovered, std::nullopt) << "the first start is no recovery";
  Fail(1, milliseconds(20), TimePoint(seconds(60)));
  ASSERT_EQ(over_.size(), 1u);
  EXPECT_EQ(over_[0].detected, milliseconds(20)) << "as its agent says";
  Join(1, TimePoint(seconds(61)), 0);
  Join(2, TimePoint(seconds(62)), 0);
  coordinator_.Hear(1, WorkersStarted{round_}, TimePoint(seconds(63)));
  Take();
  EXPECT_EQ(runs_.size(), 1u) << "one node's workers are still to start";
  coordinator_.Hear(2, WorkersStarted{round_}, TimePoint(seconds(65)));
  Take();
  ASSERT_EQ(runs_.size(), 2u);
  EXPECT_EQ(runs_[1].recovered, seconds(5));

  const auto job = coordinator_.Describe("job", TimePoint(seconds(75)));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->age, seconds(67));
  EXPECT_EQ(job->productive, seconds(50) - milliseconds(20) + seconds(10));

  Fail(2, milliseconds(30), TimePoint(seconds(80)));
  ASSERT_TRUE(ended_) << "the budget is used up";
  EXPECT_EQ(ended_->how, VerdictKind::kWorkerFailed);
  EXPECT_EQ(ended_->detected, milliseconds(30));
  const auto end = coordinator_.Describe("job", TimePoint(seconds(90)));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->age, seconds(72)) << "no time passes after the verdict";
  EXPECT_EQ(end->productive, seconds(65) - milliseconds(50));
}

// "Rank 3 is waiting. Since when?"
TEST_F(CoordinatorFiguresTest, SinceWhenANodeIsInItsStateIsKnown) {
  const auto since = [&](TimePoint now) {
    std::vector<std::pair<NodeState, std::optional<Duration>>> nodes;
    const auto job = coordinator_.Describe("job", now);
    for (const NodeSnapshot& node : job->nodes) nodes.emplace_back(node.state, node.state_ago);
    return nodes;
  };
  using Nodes = std::vector<std::pair<NodeState, std::optional<Duration>>>;
  Join(1, TimePoint(seconds(8)));
  EXPECT_EQ(since(TimePoint(seconds(9))), (Nodes{{NodeState::kJoined, seconds(1)}}));
  RunTwoNodes();
  Beat(1, TimePoint(seconds(20)));
  EXPECT_EQ(since(TimePoint(seconds(60))),
            (Nodes{{NodeState::kRunning, seconds(50)}, {NodeState::kRunning, seconds(50)}}));
  Fail(1, milliseconds(20), TimePoint(seconds(60)));
  Join(2, TimePoint(seconds(62)), 0);
  EXPECT_EQ(since(TimePoint(seconds(65))),
            (Nodes{{NodeState::kStopping, seconds(5)}, {NodeState::kJoined, seconds(3)}}));
  Coordinator next{Coordinator::Options{.first_incarnation = 100}};
  ASSERT_TRUE(
      next.Restore(*coordinator_.Record("job", TimePoint(seconds(65))), TimePoint(seconds(70))));
  const auto job = next.Describe("job", TimePoint(seconds(71)));
  ASSERT_EQ(job->nodes.size(), 2u);
  EXPECT_EQ(job->nodes[0].state_ago, std::nullopt) << "for how long nobody decided, it cannot say";
}

// "muster_detection_seconds_sum is 292 million years": an agent had sent that.
TEST_F(CoordinatorFiguresTest, NoWorkerHasFailedBeforeItsRoundBegan) {
  RunTwoNodes();
  Fail(1, Duration::max(), TimePoint(seconds(60)));
  ASSERT_EQ(over_.size(), 1u);
  EXPECT_EQ(over_[0].detected, seconds(51)) << "since its members were told their ranks";
  const auto job = coordinator_.Describe("job", TimePoint(seconds(61)));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->productive, seconds(0));
}

// An agent reported 2^64 - 1 lost bytes, and the next lost byte made the total 0.
TEST_F(CoordinatorFiguresTest, BytesThatAreLostAreNeverFewerThanBefore) {
  RunTwoNodes();
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  Beat(1, TimePoint(seconds(11)), kMost);
  Beat(2, TimePoint(seconds(11)), 4096);
  EXPECT_EQ(coordinator_.log_bytes_lost(), kMost);
  const auto job = coordinator_.Describe("job", TimePoint(seconds(12)));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->log_bytes_lost, kMost);
}

// Two nodes fail one after the other before all workers run again: that is one recovery.
TEST_F(CoordinatorFiguresTest, RoundThatNeverRanInFullIsPartOfTheRecovery) {
  RunTwoNodes();
  coordinator_.Hear(1, Leaving{"it is drained"}, TimePoint(seconds(20)));
  coordinator_.Hear(1, Goodbye{"it is drained"}, TimePoint(seconds(20)));
  Take();
  ASSERT_EQ(over_.size(), 1u);
  EXPECT_EQ(over_[0].detected, std::nullopt) << "nothing had failed";
  Join(2, TimePoint(seconds(21)), 0);
  Join(3, TimePoint(seconds(21)));
  coordinator_.Hear(2, WorkersStarted{round_}, TimePoint(seconds(22)));
  Take();
  Fail(3, milliseconds(1), TimePoint(seconds(23)));
  Join(2, TimePoint(seconds(24)), 1);
  Join(3, TimePoint(seconds(24)), 1);
  for (const AgentId agent : {2, 3}) {
    coordinator_.Hear(agent, WorkersStarted{round_}, TimePoint(seconds(25)));
  }
  Take();
  ASSERT_EQ(runs_.size(), 2u);
  EXPECT_EQ(runs_[1].recovered, seconds(5));
}

TEST_F(CoordinatorFiguresTest, SilenceOfALostNodeIsHowLongItTookToNotice) {
  RunTwoNodes();
  Beat(1, TimePoint(milliseconds(12'400)));
  coordinator_.Tick(*coordinator_.NextDeadline());
  Take();
  ASSERT_EQ(over_.size(), 1u);
  EXPECT_EQ(over_[0].why, RoundEnd::kNodeLost);
  EXPECT_EQ(over_[0].detected, milliseconds(2500)) << "node 2 was last heard at 10 s";
}

TEST_F(CoordinatorFiguresTest, NodeWhoseGuardSaysThatItDiedWasSilentSinceItsLastWord) {
  RunTwoNodes();
  Beat(2, TimePoint(milliseconds(11'000)));
  coordinator_.AgentDied("session2", TimePoint(milliseconds(11'300)));
  Take();
  ASSERT_EQ(over_.size(), 1u);
  EXPECT_EQ(over_[0].detected, milliseconds(300));
}

TEST_F(CoordinatorFiguresTest, BeatsAreLateByWhatIsBeyondTheirInterval) {
  RunTwoNodes();
  Beat(1, TimePoint(milliseconds(11'000)));
  Beat(1, TimePoint(milliseconds(12'000)));
  Beat(1, TimePoint(milliseconds(13'040)));
  Beat(2, TimePoint(milliseconds(11'500)));
  LeaseFigures leases = coordinator_.Leases(TimePoint(milliseconds(13'500)));
  EXPECT_EQ(leases.count, 2u);
  EXPECT_EQ(leases.out_of_touch, 0u);
  EXPECT_EQ(leases.shortest, milliseconds(500)) << "node 2, at 5/6 of its lease";
  ASSERT_NE(leases.lateness, nullptr);
  EXPECT_EQ(leases.lateness->count(), 2u) << "there is nothing that a first beat could be late for";
  EXPECT_EQ(leases.lateness->sum(), milliseconds(40));
  coordinator_.Disconnected(1, "its connection ended", TimePoint(milliseconds(13'600)));
  EXPECT_EQ(coordinator_.Leases(TimePoint(milliseconds(13'600))).out_of_touch, 1u);
  // It comes back: the gap is not lateness of its keep-alives.
  coordinator_.Hear(7, Resume{"session1", 1}, TimePoint(milliseconds(14'000)));
  Beat(7, TimePoint(milliseconds(14'000)));
  EXPECT_EQ(coordinator_.Leases(TimePoint(milliseconds(14'000))).lateness->count(), 2u);
}

TEST_F(CoordinatorFiguresTest, LostOutputIsCountedOnceForJobAndDaemon) {
  RunTwoNodes();
  Beat(1, TimePoint(seconds(11)), 100);
  Beat(1, TimePoint(seconds(12)), 100);
  Beat(2, TimePoint(seconds(12)), 7);
  Beat(1, TimePoint(seconds(13)), 150);
  EXPECT_EQ(coordinator_.log_bytes_lost(), 157u);
  EXPECT_EQ(coordinator_.Describe("job", TimePoint(seconds(13)))->log_bytes_lost, 157u);
}

TEST_F(CoordinatorFiguresTest, NodeThatWasGivenUpAndComesBackHasLostNothingTwice) {
  RunTwoNodes();
  Beat(1, TimePoint(seconds(11)), 100);
  Beat(2, TimePoint(seconds(11)));
  Beat(2, TimePoint(seconds(13)));
  coordinator_.Tick(*coordinator_.NextDeadline());
  Take();
  ASSERT_EQ(over_.size(), 1u);
  JoinRequest back = RequestFor(1, 2);
  back.session = "another session";
  back.ran_in = round_.incarnation;
  back.after = round_.number;
  coordinator_.Hear(3, back, TimePoint(seconds(14)));
  Take();
  Beat(3, TimePoint(seconds(14)), 100);
  Beat(3, TimePoint(seconds(15)), 101);
  EXPECT_EQ(coordinator_.log_bytes_lost(), 101u);
}

// "We restarted musterd, and it counted last week's lost bytes again."
TEST_F(CoordinatorFiguresTest, WhatWasLostBeforeTheDaemonsStartIsNotCountedAgain) {
  RunTwoNodes();
  Beat(1, TimePoint(seconds(11)), 100);
  Coordinator next{Coordinator::Options{.first_incarnation = 100}};
  ASSERT_TRUE(
      next.Restore(*coordinator_.Record("job", TimePoint(seconds(11))), TimePoint(seconds(12))));
  next.Hear(8, Resume{"session1", 1}, TimePoint(seconds(13)));
  next.Hear(8, KeepAlive{.number = 1, .log_bytes_lost = 100}, TimePoint(seconds(13)));
  EXPECT_EQ(next.log_bytes_lost(), 0u);
  next.Hear(8, KeepAlive{.number = 2, .log_bytes_lost = 130}, TimePoint(seconds(14)));
  EXPECT_EQ(next.log_bytes_lost(), 30u);
  // Its workers run, as recorded, and their time before counts.
  EXPECT_EQ(next.Describe("job", TimePoint(seconds(14)))->productive, seconds(3));
}

TEST_F(CoordinatorFiguresTest, WhoIsRefusedForALimitIsToldWithTheLimit) {
  Join(1, TimePoint(seconds(1)));
  JoinRequest other = RequestFor(2, 1);
  other.run_id = "other";
  coordinator_.Hear(2, other, TimePoint(seconds(2)));
  Take();
  EXPECT_EQ(refused_.limit, &limits::kJobs) << refused_.sentence;
}

}  // namespace
}  // namespace muster::rendezvous
