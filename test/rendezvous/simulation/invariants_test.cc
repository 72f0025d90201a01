// Goal: the simulation's invariants detect violations. A simulation that never fails proves nothing
// unless a Coordinator with a bug would fail it.
//
// Method: hand-written histories, as a Coordinator with one bug would produce them. Each must be
// caught by the check meant for it; the correct history must pass all checks. Job "j" wants 2 to 3
// nodes and survives one restart; agent n is node "n<n>" with n workers.
#include "test/rendezvous/simulation/invariants.h"

#include <gtest/gtest.h>

#include <utility>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Directives = std::vector<Outgoing>;

TimePoint At(int ms) {
  return TimePoint(milliseconds(ms));
}

JoinRequest RequestOf(AgentId agent) {
  JoinRequest request{.run_id = "j",
                      .settings = {.min_nodes = 2,
                                   .max_nodes = 3,
                                   .last_call = milliseconds(4500),
                                   .join_timeout = seconds(10),
                                   .lease = seconds(6),
                                   .max_restarts = 1}};
  request.node = {.node_id = absl::StrCat("n", agent),
                  .host = absl::StrCat("n", agent),
                  .address = absl::StrCat("10.0.0.", agent),
                  .master_port = 20'000,
                  .slots = static_cast<int>(agent)};
  return request;
}

Directives operator+(Directives a, const Directives& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Directives ToAll(const std::vector<AgentId>& agents, const Directive& directive) {
  Directives directives;
  for (const AgentId agent : agents) directives.push_back({agent, directive});
  return directives;
}

// The Assignments of a round with these members, in order of rank, as they should be.
Directives Start(RoundNumber round, const std::vector<AgentId>& members, int restart = 0) {
  int workers = 0;
  for (const AgentId member : members) workers += static_cast<int>(member);
  Directives directives;
  Assignment a{.run_id = "j",
               .round = round,
               .group_world_size = static_cast<int>(members.size()),
               .world_size = workers,
               .role_world_size = workers,
               .master_addr = absl::StrCat("10.0.0.", members[0]),
               .master_port = 20'000,
               .restart_count = restart,
               .max_restarts = 1};
  for (const AgentId member : members) {
    directives.push_back({member, a});
    ++a.group_rank;
    a.base_rank += static_cast<int>(member);
    a.role_base_rank = a.base_rank;
  }
  return directives;
}

template <typename Field>
void Falsify(Outgoing& outgoing, Field Assignment::*field, const Field& value) {
  Assignment assignment = std::get<Assignment>(outgoing.directive());
  assignment.*field = value;
  outgoing = {outgoing.to, assignment};
}

Verdict Succeeded(int rounds, int restarts = 0) {
  return {.kind = VerdictKind::kSucceeded,
          .sentence = "job 'j' succeeded",
          .rounds = rounds,
          .restarts = restarts};
}

class InvariantsTest : public testing::Test {
 protected:
  // The event was handed over at `ms` and brought about `directives`.
  void See(int ms, const Call& event, Directives directives = {},
           std::vector<std::string> forgotten = {}) {
    const Outbox outbox{.directives = std::move(directives),
                        .forgotten_jobs = std::move(forgotten)};
    invariants_.Observe(event, outbox, At(ms));
  }
  // A first join is welcomed.
  void SeeComing(int ms, AgentId agent, const Directives& directives = {}) {
    const JoinRequest request = RequestOf(agent);
    See(ms, {.kind = CallKind::kJoin, .agent = agent, .request = &request},
        Directives{{agent, Welcome{seconds(1), seconds(6)}}} + directives);
  }
  void SeeJoin(int ms, AgentId agent, const Directives& directives = {}) {
    const JoinRequest request = RequestOf(agent);
    See(ms, {.kind = CallKind::kJoin, .agent = agent, .request = &request}, directives);
  }
  // Agents 1 and 2 run round 0 from 100 ms on.
  void SeeRoundOfTwo() {
    SeeComing(0, 1);
    SeeComing(0, 2);
    See(100, {.kind = CallKind::kTick}, Start(0, {1, 2}));
    ASSERT_EQ(Caught(), "nothing");
  }
  // Agents 1, 2 and 3 run round 0 from 100 ms on.
  void SeeRoundOfThree() {
    SeeComing(0, 1);
    SeeComing(0, 2);
    SeeComing(100, 3, Start(0, {1, 2, 3}));
    ASSERT_EQ(Caught(), "nothing");
  }
  void SeeFailure(int ms, AgentId agent, RoundNumber round, int rank,
                  const Directives& directives) {
    See(ms, {.kind = CallKind::kFailed, .agent = agent, .round = round, .rank = rank}, directives);
  }

  // The check that was broken first.
  std::string Caught() const {
    if (invariants_.violations().empty()) return "nothing";
    return NameOf(invariants_.violations().front().check);
  }

  Invariants invariants_{milliseconds(300)};
};

TEST_F(InvariantsTest, TrueHistoryOfRestartSpareAndEndIsNotFaulted) {
  SeeRoundOfThree();
  SeeComing(150, 4, {{4, Waiting{0, "full", true}}});
  See(200, {.kind = CallKind::kStarted, .agent = 1, .round = 0});
  SeeFailure(300, 2, 0, 1, ToAll({1, 2, 3}, Stop{0, "rank 1 failed"}));
  SeeFailure(310, 3, 0, 3, {{3, Fenced{0, "over"}}});
  SeeJoin(400, 1);
  SeeJoin(410, 2);
  See(500, {.kind = CallKind::kLost, .agent = 3}, Start(1, {1, 2, 4}, 1));
  See(510, {.kind = CallKind::kKeepAlive, .agent = 3});
  See(600, {.kind = CallKind::kSucceeded, .agent = 1, .round = 1});
  See(610, {.kind = CallKind::kSucceeded, .agent = 4, .round = 1});
  See(620, {.kind = CallKind::kSucceeded, .agent = 2, .round = 1},
      ToAll({1, 2, 4}, Succeeded(2, 1)));
  SeeComing(630, 5, {{5, Succeeded(2, 1)}});
  See(700, {.kind = CallKind::kLeave, .agent = 1});
  See(700, {.kind = CallKind::kLeave, .agent = 2});
  See(700, {.kind = CallKind::kLeave, .agent = 4});
  See(700, {.kind = CallKind::kLeave, .agent = 5}, {}, {"j"});
  EXPECT_EQ(Caught(), "nothing");
  EXPECT_EQ(invariants_.coverage()[Happening::kSparePromoted], 1);
  EXPECT_EQ(invariants_.coverage()[Happening::kRestart], 1);
}

// Job "j" of three nodes needs two.
TEST_F(InvariantsTest, OneOfTwoThatWantToLeaveMay) {
  SeeRoundOfThree();
  const Directives stops = ToAll({1, 3}, Stop{0, "n2 is leaving"});
  See(200, {.kind = CallKind::kAskToLeave, .agent = 2, .round = 0},
      Directives{{2, LeaveAnswer{.may_leave = true}}} + stops);
  See(200, {.kind = CallKind::kAskToLeave, .agent = 3, .round = 0}, {{3, LeaveAnswer{}}});
  EXPECT_EQ(Caught(), "nothing");
  // Asked again, as the answer was lost, or said before it came.
  See(300, {.kind = CallKind::kAskToLeave, .agent = 2, .round = 0},
      {{2, LeaveAnswer{.may_leave = true}}});
  SeeJoin(310, 2, {{2, LeaveAnswer{.may_leave = true}}});
  EXPECT_EQ(Caught(), "nothing");
}

TEST_F(InvariantsTest, BothMayLeave) {
  SeeRoundOfThree();
  See(200, {.kind = CallKind::kAskToLeave, .agent = 2, .round = 0},
      Directives{{2, LeaveAnswer{.may_leave = true}}} + ToAll({1, 3}, Stop{0, "n2 is leaving"}));
  See(200, {.kind = CallKind::kAskToLeave, .agent = 3, .round = 0},
      {{3, LeaveAnswer{.may_leave = true}}});
  EXPECT_EQ(Caught(), "enough stay");
}

TEST_F(InvariantsTest, NodeThatTheJobCanSpareHasToStay) {
  SeeRoundOfThree();
  See(200, {.kind = CallKind::kAskToLeave, .agent = 2, .round = 0}, {{2, LeaveAnswer{}}});
  EXPECT_EQ(Caught(), "enough stay");
}

// Though a node has finished: nothing is done again for a spare one.
TEST_F(InvariantsTest, SpareMayLeave) {
  SeeRoundOfThree();
  SeeComing(150, 4, {{4, Waiting{0, "full", true}}});
  See(200, {.kind = CallKind::kSucceeded, .agent = 1, .round = 0});
  See(210, {.kind = CallKind::kAskToLeave, .agent = 4}, {{4, LeaveAnswer{.may_leave = true}}});
  EXPECT_EQ(Caught(), "nothing");
  See(220, {.kind = CallKind::kLeave, .agent = 4});
  See(230, {.kind = CallKind::kAskToLeave, .agent = 2, .round = 0}, {{2, LeaveAnswer{}}});
  EXPECT_EQ(Caught(), "nothing");
}

TEST_F(InvariantsTest, QuestionIsNotAnswered) {
  SeeRoundOfTwo();
  See(200, {.kind = CallKind::kAskToLeave, .agent = 2, .round = 0});
  EXPECT_EQ(Caught(), "enough stay");
}

TEST_F(InvariantsTest, RoundNumberIsUsedTwice) {
  SeeRoundOfTwo();
  SeeFailure(300, 1, 0, 0, ToAll({1, 2}, Stop{0, "rank 0 failed"}));
  SeeJoin(400, 1);
  SeeJoin(400, 2, Start(0, {1, 2}, 1));
  EXPECT_EQ(Caught(), "rounds increase");
}

TEST_F(InvariantsTest, TwoNodesHaveOneRank) {
  SeeComing(0, 1);
  SeeComing(0, 2);
  Directives start = Start(0, {1, 2});
  Falsify(start[1], &Assignment::group_rank, 0);
  See(100, {.kind = CallKind::kTick}, start);
  EXPECT_EQ(Caught(), "ranks partition");
}

TEST_F(InvariantsTest, WorkerRanksOfTwoNodesOverlap) {
  SeeComing(0, 2);
  SeeComing(0, 3);
  Directives start = Start(0, {2, 3});
  Falsify(start[1], &Assignment::base_rank, 1);
  See(100, {.kind = CallKind::kTick}, start);
  EXPECT_EQ(Caught(), "ranks partition");
}

TEST_F(InvariantsTest, WorldIsLargerThanItsWorkers) {
  SeeComing(0, 1);
  SeeComing(0, 2);
  Directives start = Start(0, {1, 2});
  for (Outgoing& outgoing : start) Falsify(outgoing, &Assignment::world_size, 4);
  See(100, {.kind = CallKind::kTick}, start);
  EXPECT_EQ(Caught(), "ranks partition");
}

TEST_F(InvariantsTest, NodesAreToldTwoMasters) {
  SeeComing(0, 1);
  SeeComing(0, 2);
  Directives start = Start(0, {1, 2});
  Falsify(start[1], &Assignment::master_addr, std::string("10.0.0.2"));
  See(100, {.kind = CallKind::kTick}, start);
  EXPECT_EQ(Caught(), "ranks partition");
}

TEST_F(InvariantsTest, NodesAreToldTwoRestartCounts) {
  SeeComing(0, 1);
  SeeComing(0, 2);
  Directives start = Start(0, {1, 2});
  Falsify(start[1], &Assignment::restart_count, 1);
  See(100, {.kind = CallKind::kTick}, start);
  EXPECT_EQ(Caught(), "ranks partition");
}

TEST_F(InvariantsTest, FailureInAnOldRoundIsActedUpon) {
  SeeRoundOfTwo();
  SeeFailure(200, 1, 0, 0, ToAll({1, 2}, Stop{0, "rank 0 failed"}));
  SeeJoin(300, 1);
  SeeJoin(300, 2, Start(1, {1, 2}, 1));
  SeeFailure(310, 2, 0, 1, ToAll({1, 2}, Stop{1, "rank 1 failed"}));
  EXPECT_EQ(Caught(), "old rounds fenced");
}

TEST_F(InvariantsTest, FencedMessageChangesTheJobAllTheSame) {
  SeeRoundOfTwo();
  SeeFailure(200, 1, 0, 0, ToAll({1, 2}, Stop{0, "rank 0 failed"}));
  const Call late{.kind = CallKind::kFailed, .agent = 2, .round = 0, .rank = 1};
  ASSERT_NE(invariants_.JobOfOldRound(late), nullptr);
  EXPECT_EQ(*invariants_.JobOfOldRound(late), "j");
  const JobSnapshot before{.run_id = "j", .round = 1, .restart_count = 1};
  JobSnapshot after = before;
  invariants_.ObserveOld(late, before, after);
  EXPECT_EQ(Caught(), "nothing");
  after.restart_count = 2;
  invariants_.ObserveOld(late, before, after);
  EXPECT_EQ(Caught(), "old rounds fenced");
}

TEST_F(InvariantsTest, MessageOfTheCurrentRoundIsFenced) {
  SeeRoundOfTwo();
  const Call started{.kind = CallKind::kStarted, .agent = 1, .round = 0};
  EXPECT_EQ(invariants_.JobOfOldRound(started), nullptr);
  SeeFailure(200, 1, 0, 0, {{1, Fenced{0, "over"}}});
  EXPECT_EQ(Caught(), "old rounds fenced");
}

TEST_F(InvariantsTest, JoinIsNotAnswered) {
  SeeJoin(0, 1);
  EXPECT_EQ(Caught(), "wait bounded");
}

TEST_F(InvariantsTest, RoundGathersForEver) {
  SeeComing(0, 1);
  for (int ms = 1000; ms <= 10'000; ms += 1000) See(ms, {.kind = CallKind::kKeepAlive, .agent = 1});
  EXPECT_EQ(Caught(), "nothing");
  See(10'301, {.kind = CallKind::kKeepAlive, .agent = 1});
  EXPECT_EQ(Caught(), "wait bounded");
}

TEST_F(InvariantsTest, WhoComesToAFullRoundIsNotTold) {
  SeeRoundOfThree();
  SeeComing(200, 4);
  EXPECT_EQ(Caught(), "wait bounded");
}

TEST_F(InvariantsTest, RoundHasTooFewNodes) {
  SeeComing(0, 1, Start(0, {1}));
  EXPECT_EQ(Caught(), "round size");
}

TEST_F(InvariantsTest, RoundHasTooManyNodes) {
  for (const AgentId agent : {1, 2, 3, 4}) SeeComing(0, agent);
  See(100, {.kind = CallKind::kTick}, Start(0, {1, 2, 3, 4}));
  EXPECT_EQ(Caught(), "round size");
}

TEST_F(InvariantsTest, NodeIsInTwoRoundsAtOnce) {
  SeeRoundOfTwo();
  SeeComing(200, 3, {{1, Stop{0, "n3 joined"}}});
  SeeJoin(300, 1, Start(1, {1, 2, 3}));
  EXPECT_EQ(Caught(), "all are stopped");  // at 200, and at 300:
  EXPECT_EQ(invariants_.violations().back().check, Check::kStopBeforeStart);
}

TEST_F(InvariantsTest, NodeIsStartedWithoutHavingAskedAgain) {
  SeeRoundOfTwo();
  SeeFailure(200, 1, 0, 0, ToAll({1, 2}, Stop{0, "rank 0 failed"}));
  SeeJoin(300, 1, Start(1, {1, 2}, 1));
  EXPECT_EQ(Caught(), "stop before start");
}

TEST_F(InvariantsTest, SurvivorIsNotToldThatAPeerIsLost) {
  SeeRoundOfTwo();
  See(200, {.kind = CallKind::kLost, .agent = 2});
  EXPECT_EQ(Caught(), "all are stopped");
}

TEST_F(InvariantsTest, NewcomerCostsARestart) {
  SeeRoundOfTwo();
  SeeComing(200, 3, ToAll({1, 2}, Stop{0, "n3 joined"}));
  SeeJoin(300, 1);
  SeeJoin(300, 2, Start(1, {1, 2, 3}, 1));
  EXPECT_EQ(Caught(), "restart budget");
}

TEST_F(InvariantsTest, OneRestartMoreThanTheJobHas) {
  SeeRoundOfTwo();
  SeeFailure(200, 1, 0, 0, ToAll({1, 2}, Stop{0, "rank 0 failed"}));
  SeeJoin(300, 1);
  SeeJoin(300, 2, Start(1, {1, 2}, 1));
  SeeFailure(400, 1, 1, 0, ToAll({1, 2}, Stop{1, "rank 0 failed"}));
  // That the budget was spent shows in that the verdict, which was due, has not come.
  EXPECT_EQ(invariants_.violations().back().check, Check::kVerdictIsTrue);
}

TEST_F(InvariantsTest, WhoStaysLosesItsRank) {
  SeeRoundOfThree();
  See(200, {.kind = CallKind::kLost, .agent = 3}, ToAll({1, 2}, Stop{0, "n3 was lost"}));
  SeeJoin(300, 1);
  SeeJoin(300, 2, Start(1, {2, 1}));
  EXPECT_EQ(Caught(), "sticky ranks");
}

TEST_F(InvariantsTest, RankThatNoLongerExistsNeedNotBeKept) {
  SeeRoundOfThree();
  See(200, {.kind = CallKind::kLost, .agent = 1}, ToAll({2, 3}, Stop{0, "n1 was lost"}));
  SeeJoin(300, 2);
  SeeJoin(300, 3, Start(1, {3, 2}));
  EXPECT_EQ(Caught(), "nothing");
}

TEST_F(InvariantsTest, VerdictIsNotToldToEveryone) {
  SeeRoundOfTwo();
  See(200, {.kind = CallKind::kSucceeded, .agent = 1, .round = 0});
  See(300, {.kind = CallKind::kSucceeded, .agent = 2, .round = 0}, {{2, Succeeded(1)}});
  EXPECT_EQ(Caught(), "one verdict");
}

TEST_F(InvariantsTest, JobHasTwoVerdicts) {
  SeeRoundOfTwo();
  See(200, {.kind = CallKind::kSucceeded, .agent = 1, .round = 0});
  See(300, {.kind = CallKind::kSucceeded, .agent = 2, .round = 0}, ToAll({1, 2}, Succeeded(1)));
  const Verdict closed{.kind = VerdictKind::kClosed, .sentence = "job 'j' was closed", .rounds = 1};
  See(400, {.kind = CallKind::kClose}, ToAll({1, 2}, closed));
  EXPECT_EQ(Caught(), "one verdict");
}

TEST_F(InvariantsTest, SuccessBeforeAllHaveSucceeded) {
  SeeRoundOfTwo();
  See(200, {.kind = CallKind::kSucceeded, .agent = 1, .round = 0}, ToAll({1, 2}, Succeeded(1)));
  EXPECT_EQ(invariants_.violations().back().check, Check::kVerdictIsTrue);
}

TEST_F(InvariantsTest, NoVerdictWhenAllHaveSucceeded) {
  SeeRoundOfTwo();
  See(200, {.kind = CallKind::kSucceeded, .agent = 1, .round = 0});
  See(300, {.kind = CallKind::kSucceeded, .agent = 2, .round = 0});
  EXPECT_EQ(Caught(), "verdict is true");
}

TEST_F(InvariantsTest, JobFailsThoughARestartIsLeft) {
  SeeRoundOfTwo();
  const Verdict failed{.kind = VerdictKind::kWorkerFailed,
                       .sentence = "rank 0 failed",
                       .root_cause = WorkerFailure{.rank = 0},
                       .rounds = 1};
  SeeFailure(200, 1, 0, 0, ToAll({1, 2}, failed));
  EXPECT_EQ(Caught(), "verdict is true");
}

TEST_F(InvariantsTest, RootCauseIsAnotherWorker) {
  SeeRoundOfTwo();
  SeeFailure(200, 1, 0, 0, ToAll({1, 2}, Stop{0, "rank 0 failed"}));
  SeeJoin(300, 1);
  SeeJoin(300, 2, Start(1, {1, 2}, 1));
  const Verdict failed{.kind = VerdictKind::kWorkerFailed,
                       .sentence = "rank 2 failed",
                       .root_cause = WorkerFailure{.rank = 2},
                       .rounds = 2,
                       .restarts = 1};
  SeeFailure(400, 1, 1, 0, ToAll({1, 2}, failed));
  EXPECT_EQ(Caught(), "verdict is true");
}

TEST_F(InvariantsTest, JoinTimeoutThoughEnoughNodesWait) {
  SeeComing(0, 1);
  SeeComing(9000, 2);
  See(9001, {.kind = CallKind::kKeepAlive, .agent = 1});
  const Verdict timeout{.kind = VerdictKind::kJoinTimeout, .sentence = "too late"};
  See(10'000, {.kind = CallKind::kTick}, ToAll({1, 2}, timeout));
  EXPECT_NE(Caught(), "nothing");
  EXPECT_EQ(invariants_.violations().back().check, Check::kVerdictIsTrue);
}

TEST_F(InvariantsTest, StartAfterTheVerdict) {
  SeeRoundOfTwo();
  See(200, {.kind = CallKind::kSucceeded, .agent = 1, .round = 0});
  See(300, {.kind = CallKind::kSucceeded, .agent = 2, .round = 0}, ToAll({1, 2}, Succeeded(1)));
  See(400, {.kind = CallKind::kTick}, Start(1, {1, 2}));
  EXPECT_EQ(Caught(), "end is end");
}

TEST_F(InvariantsTest, StopAfterTheVerdict) {
  SeeRoundOfTwo();
  See(200, {.kind = CallKind::kSucceeded, .agent = 1, .round = 0});
  See(300, {.kind = CallKind::kSucceeded, .agent = 2, .round = 0}, ToAll({1, 2}, Succeeded(1)));
  See(400, {.kind = CallKind::kLost, .agent = 2}, {{1, Stop{0, "n2 was lost"}}});
  EXPECT_EQ(Caught(), "end is end");
}

TEST_F(InvariantsTest, RoundStartsWithoutANodeThatStillStops) {
  SeeRoundOfThree();
  SeeFailure(200, 1, 0, 0, ToAll({1, 2, 3}, Stop{0, "rank 0 failed"}));
  SeeJoin(300, 1);
  SeeJoin(300, 2, Start(1, {1, 2}, 1));
  EXPECT_EQ(Caught(), "places are kept");
}

TEST_F(InvariantsTest, RoundStartsAtTheJoinTimeoutWithoutANodeThatStillStops) {
  SeeRoundOfThree();
  SeeFailure(200, 1, 0, 0, ToAll({1, 2, 3}, Stop{0, "rank 0 failed"}));
  SeeJoin(300, 1);
  SeeJoin(300, 2);
  for (const AgentId agent : {1, 2, 3}) See(5000, {.kind = CallKind::kKeepAlive, .agent = agent});
  for (const AgentId agent : {1, 2, 3}) See(9000, {.kind = CallKind::kKeepAlive, .agent = agent});
  See(10'200, {.kind = CallKind::kTick}, Start(1, {1, 2}, 1));
  EXPECT_EQ(Caught(), "nothing");
}

TEST_F(InvariantsTest, SpareWaitsBesideAFreePlace) {
  SeeComing(0, 1);
  SeeComing(0, 2);
  SeeComing(0, 3, {{3, Waiting{0, "full", true}}});
  See(100, {.kind = CallKind::kTick}, Start(0, {1, 2}));
  EXPECT_EQ(Caught(), "spares are needed");
}

TEST_F(InvariantsTest, NodeIsLostBeforeItsLeaseIsOver) {
  SeeComing(0, 1);
  SeeComing(1000, 2);
  See(1000, {.kind = CallKind::kKeepAlive, .agent = 1});
  See(5999, {.kind = CallKind::kTick}, {{1, Refused{"silent"}}});
  EXPECT_EQ(Caught(), "leases");
}

TEST_F(InvariantsTest, NodeIsLostForTheSilenceOfAHalt) {
  SeeComing(0, 1);
  SeeComing(0, 2);
  See(9000, {.kind = CallKind::kTick, .late = seconds(4)}, {{1, Refused{"silent"}}});
  EXPECT_EQ(Caught(), "leases");
}

TEST_F(InvariantsTest, SilentNodeStays) {
  SeeComing(0, 1);
  See(4000, {.kind = CallKind::kTick});
  EXPECT_EQ(Caught(), "nothing");
  See(5000, {.kind = CallKind::kTick});
  EXPECT_EQ(Caught(), "leases");
}

TEST_F(InvariantsTest, DeadlineIsLaterThanALease) {
  SeeComing(0, 1);
  invariants_.ObserveDeadline(At(5000));
  EXPECT_EQ(Caught(), "nothing");
  invariants_.ObserveDeadline(At(5001));
  EXPECT_EQ(Caught(), "deadlines");
}

TEST_F(InvariantsTest, DeadlineIsLaterThanTheLastCall) {
  SeeComing(0, 1);
  SeeComing(1000, 2);
  See(3000, {.kind = CallKind::kKeepAlive, .agent = 1});
  See(3000, {.kind = CallKind::kKeepAlive, .agent = 2});
  invariants_.ObserveDeadline(At(5500));
  EXPECT_EQ(Caught(), "nothing");
  invariants_.ObserveDeadline(At(7000));
  EXPECT_EQ(Caught(), "deadlines");
}

TEST_F(InvariantsTest, NoDeadlineWhileARoundGathers) {
  SeeComing(0, 1);
  invariants_.ObserveDeadline(std::nullopt);
  EXPECT_EQ(Caught(), "deadlines");
}

TEST_F(InvariantsTest, WhoHasLeftIsToldSomething) {
  SeeRoundOfTwo();
  See(200, {.kind = CallKind::kLost, .agent = 2}, ToAll({1, 2}, Stop{0, "n2 was lost"}));
  EXPECT_EQ(Caught(), "addressee");
}

TEST_F(InvariantsTest, KeepAliveStopsARound) {
  SeeRoundOfTwo();
  See(200, {.kind = CallKind::kKeepAlive, .agent = 2}, ToAll({1, 2}, Stop{0, "?"}));
  EXPECT_EQ(Caught(), "only with cause");
}

TEST_F(InvariantsTest, GoodNodeIsRefused) {
  SeeComing(0, 1);
  const JoinRequest request = RequestOf(2);
  See(100, {.kind = CallKind::kJoin, .agent = 2, .request = &request}, {{2, Refused{"?"}}});
  EXPECT_EQ(Caught(), "only with cause");
}

TEST_F(InvariantsTest, NodeWithAnotherNumberOfNodesIsTaken) {
  SeeComing(0, 1);
  JoinRequest request = RequestOf(2);
  request.settings.max_nodes = 4;
  See(100, {.kind = CallKind::kJoin, .agent = 2, .request = &request},
      {{2, Welcome{seconds(1), seconds(6)}}});
  EXPECT_EQ(Caught(), "only with cause");
}

TEST_F(InvariantsTest, JobIsForgottenWhileItIsAttended) {
  SeeRoundOfTwo();
  See(200, {.kind = CallKind::kLost, .agent = 2}, {{1, Stop{0, "n2 was lost"}}}, {"j"});
  EXPECT_EQ(Caught(), "forgotten");
}

TEST_F(InvariantsTest, JobOfNobodyIsNotForgotten) {
  SeeComing(0, 1);
  See(100, {.kind = CallKind::kLeave, .agent = 1});
  EXPECT_EQ(Caught(), "forgotten");
}

TEST_F(InvariantsTest, SnapshotShowsOtherRanksThanTheNodesWereTold) {
  SeeRoundOfTwo();
  JobSnapshot snapshot{.run_id = "j", .state = JobState::kRunning, .round = 0};
  snapshot.nodes = {{RequestOf(1).node, NodeState::kStarting, 0, ""},
                    {RequestOf(2).node, NodeState::kStarting, 1, ""}};
  invariants_.ObserveSnapshot(snapshot);
  EXPECT_EQ(Caught(), "nothing");
  std::swap(snapshot.nodes[0].group_rank, snapshot.nodes[1].group_rank);
  invariants_.ObserveSnapshot(snapshot);
  EXPECT_EQ(Caught(), "snapshot is true");
}

}  // namespace
}  // namespace muster::rendezvous
