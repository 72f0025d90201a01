// The agent's behaviour as transcripts: events go in, the resulting actions come out, on one line,
// in order.
#include "launcher/agent/agent_policy.h"
#include "base/signal_names.h"

#include <csignal>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::launcher {
namespace {

using rendezvous::Assignment;
using rendezvous::Evicted;
using rendezvous::Fenced;
using rendezvous::Refused;
using rendezvous::Stop;
using rendezvous::Verdict;
using rendezvous::VerdictKind;
using rendezvous::Waiting;
using rendezvous::Welcome;
using rendezvous::WorkerFailure;

struct Text {
  std::string operator()(const JoinRound& join) const {
    return join.after.number < 0 ? "join" : absl::StrCat("join after ", join.after.number);
  }
  std::string operator()(const StartWorkers& start) const {
    return absl::StrCat("start as group rank ", start.assignment.group_rank);
  }
  std::string operator()(const StopWorkers& stop) const {
    return absl::StrCat("stop with ", base::SignalName(stop.signal));
  }
  std::string operator()(const KillWorkers&) const { return "kill"; }
  std::string operator()(const ReportStarted& report) const {
    return absl::StrCat("report round ", report.round.number, " started");
  }
  std::string operator()(const ReportExited& report) const {
    const std::string how =
        report.outcome.succeeded ? "succeeded" : "failed: " + report.outcome.failure->what;
    return absl::StrCat("report round ", report.round.number, " ", how);
  }
  std::string operator()(const SayLeaving& leaving) const {
    return absl::StrCat("leaving (", leaving.reason, ")");
  }
  std::string operator()(const AskToLeave& ask) const {
    return absl::StrCat("ask to leave round ", ask.round.number, " (", ask.reason, ")");
  }
  std::string operator()(const SayGoodbye& goodbye) const {
    return absl::StrCat("goodbye (", goodbye.reason, ")");
  }
  std::string operator()(const Finish&) const { return "finish"; }
  std::string operator()(const Tell& tell) const {
    return absl::StrCat(tell.level == Tell::kWarning ? "warn" : "notice", " \"", tell.sentence,
                        "\"");
  }
};

std::string Of(const Actions& actions) {
  return absl::StrJoin(actions, "; ", [](std::string* out, const Action& action) {
    out->append(std::visit(Text{}, action));
  });
}

constexpr rendezvous::Incarnation kLife = 7;

Assignment Place(rendezvous::RoundNumber round, int group_rank = 1) {
  return {.incarnation = kLife,
          .round = round,
          .group_rank = group_rank,
          .rank_reason = "gets rank 1 by its address"};
}

const Verdict kSuccess{.kind = VerdictKind::kSucceeded, .sentence = "job 'j' succeeded"};
const Verdict kFailure{.kind = VerdictKind::kWorkerFailed, .sentence = "job 'j' failed"};
const WorkerFailure kExit3{.rank = 2, .exit_code = 3, .what = "exited with code 3"};
const char kDrains[] = "Slurm drains it";
const absl::Status kGone = absl::UnavailableError("the rendezvous at a:1 is gone");

class AgentPolicyTest : public ::testing::Test {
 protected:
  // The way to where most transcripts begin.
  void Run(rendezvous::RoundNumber round = 0) {
    if (round == 0) {
      ASSERT_EQ(Of(policy_.Begin()), "join");
    }
    ASSERT_EQ(Of(policy_.OnDirective(Place(round))),
              absl::StrCat("notice \"round ", round,
                           ": this node gets rank 1 by its address\"; start as group rank 1"));
    ASSERT_EQ(Of(policy_.OnWorkersStarted()), absl::StrCat("report round ", round, " started"));
  }

  void ExpectInterrupted(int signal) {
    ASSERT_TRUE(policy_.result().has_value());
    const auto* interrupted = std::get_if<Interrupted>(&*policy_.result());
    ASSERT_NE(interrupted, nullptr);
    EXPECT_EQ(interrupted->signal, signal);
  }
  template <typename Failed>
  void ExpectFailed(const std::string& message) {
    ASSERT_TRUE(policy_.result().has_value());
    const auto* failed = std::get_if<Failed>(&*policy_.result());
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->status.message(), message);
  }
  void ExpectVerdict(const Verdict& verdict) {
    ASSERT_TRUE(policy_.result().has_value());
    const auto* seen = std::get_if<Verdict>(&*policy_.result());
    ASSERT_NE(seen, nullptr);
    EXPECT_EQ(*seen, verdict);
  }

  AgentPolicy policy_;
};

TEST_F(AgentPolicyTest, JobSucceedsInItsFirstRound) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnDirective(Welcome{})), "");
  EXPECT_EQ(Of(policy_.OnDirective(Waiting{0, "1 of 2 nodes are here", false})),
            "warn \"1 of 2 nodes are here\"");
  EXPECT_EQ(Of(policy_.OnDirective(Place(0))),
            "notice \"round 0: this node gets rank 1 by its address\"; start as group rank 1");
  EXPECT_EQ(Of(policy_.OnWorkersStarted()), "report round 0 started");
  EXPECT_EQ(Of(policy_.OnWorkersGone(true)), "report round 0 succeeded");
  EXPECT_EQ(policy_.result(), std::nullopt) << "other nodes may still run";
  EXPECT_EQ(Of(policy_.OnDirective(kSuccess)), "goodbye ()");
  EXPECT_EQ(Of(policy_.OnGoodbyeHeard()), "finish");
  ExpectVerdict(kSuccess);
}

TEST_F(AgentPolicyTest, DirectiveOfAnUnknownKindSaysNothing) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnDirective(Waiting{rendezvous::kNoRound, "", false})), "");
}

TEST_F(AgentPolicyTest, FailedWorkerIsReportedAtOnceAndStopBringsTheNextRound) {
  Run();
  EXPECT_EQ(Of(policy_.OnFirstFailure(kExit3)), "report round 0 failed: exited with code 3");
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "rank 2 exited with code 3 (restart 1 of 3)", kLife})),
            "warn \"round 0 is over: rank 2 exited with code 3 (restart 1 of 3)\"")
      << "the group stops its workers by itself";
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "join after 0");
  Run(1);
  EXPECT_EQ(Of(policy_.OnWorkersGone(true)), "report round 1 succeeded");
}

TEST_F(AgentPolicyTest, StopThatComesAfterTheLastWorkerIsGoneBringsTheNextRoundAtOnce) {
  Run();
  EXPECT_EQ(Of(policy_.OnFirstFailure(kExit3)), "report round 0 failed: exited with code 3");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "") << "the rendezvous decides";
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "a restart", kLife})),
            "warn \"round 0 is over: a restart\"; join after 0");
}

TEST_F(AgentPolicyTest, FailureWithoutARestartLeftEndsWithTheVerdict) {
  Run();
  EXPECT_EQ(Of(policy_.OnFirstFailure(kExit3)), "report round 0 failed: exited with code 3");
  EXPECT_EQ(Of(policy_.OnDirective(kFailure)), "") << "the workers are already being stopped";
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "goodbye ()");
  EXPECT_EQ(Of(policy_.OnGoodbyeHeard()), "finish");
  ExpectVerdict(kFailure);
}

TEST_F(AgentPolicyTest, FailureOfAnotherNodeStopsTheWorkersHere) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "rank 0 failed", kLife})),
            "warn \"round 0 is over: rank 0 failed\"; stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnFirstFailure(kExit3)), "") << "a worker that fails because it is stopped";
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "join after 0");
}

TEST_F(AgentPolicyTest, StopWhileWaitingForTheOtherNodesJoinsAtOnce) {
  Run();
  EXPECT_EQ(Of(policy_.OnWorkersGone(true)), "report round 0 succeeded");
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "node b was lost", kLife})),
            "warn \"round 0 is over: node b was lost\"; join after 0");
  Run(1);
}

TEST_F(AgentPolicyTest, StopForAnOldRoundIsIgnored) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "a restart", kLife})),
            "warn \"round 0 is over: a restart\"; stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "join after 0");
  Run(1);
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "a restart", kLife})), "");
  EXPECT_EQ(Of(policy_.OnWorkersGone(true)), "report round 1 succeeded") << "round 1 ran on";
}

TEST_F(AgentPolicyTest, WorkersThatEndWhileBeingStoppedAreNoSuccess) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "a restart", kLife})),
            "warn \"round 0 is over: a restart\"; stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnWorkersGone(true)), "join after 0");
}

TEST_F(AgentPolicyTest, FencedReportIsToldAndChangesNothing) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(Fenced{0, "fenced: round 0 is over"})),
            "notice \"fenced: round 0 is over\"");
  EXPECT_EQ(Of(policy_.OnWorkersGone(true)), "report round 0 succeeded");
}

TEST_F(AgentPolicyTest, AssignmentWhileWorkersRunStartsNothing) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(Place(1))), "");
}

TEST_F(AgentPolicyTest, VerdictWhileRunningStopsTheWorkersFirst) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(kFailure)), "stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "goodbye ()");
  EXPECT_EQ(Of(policy_.OnGoodbyeHeard()), "finish");
  ExpectVerdict(kFailure);
}

TEST_F(AgentPolicyTest, SpareLeavesWithTheVerdict) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnDirective(Waiting{0, "this node is a spare", true})),
            "warn \"this node is a spare\"");
  EXPECT_EQ(Of(policy_.OnDirective(kSuccess)), "goodbye ()");
  EXPECT_EQ(Of(policy_.OnGoodbyeHeard()), "finish");
  ExpectVerdict(kSuccess);
}

TEST_F(AgentPolicyTest, VerdictCountsOverAStopThatCameBefore) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "a restart", kLife})),
            "warn \"round 0 is over: a restart\"; stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnDirective(kFailure)), "");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "goodbye ()") << "no join";
  ExpectVerdict(kFailure);
}

TEST_F(AgentPolicyTest, SignalStopsTheWorkersWithItselfAndTellsTheOthersMeanwhile) {
  Run();
  EXPECT_EQ(Of(policy_.OnSignal(SIGINT)), "leaving (interrupted by SIGINT); stop with SIGINT");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "goodbye (interrupted by SIGINT)");
  EXPECT_EQ(Of(policy_.OnGoodbyeHeard()), "finish");
  ExpectInterrupted(SIGINT);
}

TEST_F(AgentPolicyTest, SecondSignalKillsTheWorkers) {
  Run();
  EXPECT_EQ(Of(policy_.OnSignal(SIGTERM)), "leaving (interrupted by SIGTERM); stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnSignal(SIGINT)), "kill");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "goodbye (interrupted by SIGTERM)");
  ExpectInterrupted(SIGTERM);
}

TEST_F(AgentPolicyTest, SignalWhileAFailureStopsTheWorkersDoesNotStopThemAnew) {
  Run();
  EXPECT_EQ(Of(policy_.OnFirstFailure(kExit3)), "report round 0 failed: exited with code 3");
  EXPECT_EQ(Of(policy_.OnSignal(SIGTERM)), "leaving (interrupted by SIGTERM)");
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "a restart", kLife})),
            "warn \"round 0 is over: a restart\"");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "goodbye (interrupted by SIGTERM)") << "no join";
  ExpectInterrupted(SIGTERM);
}

TEST_F(AgentPolicyTest, SignalWhileJoiningLeavesAtOnce) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnSignal(SIGHUP)), "goodbye (interrupted by SIGHUP)");
  EXPECT_EQ(Of(policy_.OnDirective(Place(0))), "") << "an Assignment that crossed the goodbye";
  EXPECT_EQ(Of(policy_.OnGoodbyeHeard()), "finish");
  ExpectInterrupted(SIGHUP);
}

TEST_F(AgentPolicyTest, SignalWhileWaitingForTheOtherNodesLeavesAtOnce) {
  Run();
  EXPECT_EQ(Of(policy_.OnWorkersGone(true)), "report round 0 succeeded");
  EXPECT_EQ(Of(policy_.OnSignal(SIGTERM)), "goodbye (interrupted by SIGTERM)");
  ExpectInterrupted(SIGTERM);
}

TEST_F(AgentPolicyTest, GoodbyeThatIsNeverHeardEndsWithTheNextSignal) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnSignal(SIGTERM)), "goodbye (interrupted by SIGTERM)");
  EXPECT_EQ(Of(policy_.OnSignal(SIGINT)), "finish");
  EXPECT_EQ(Of(policy_.OnSignal(SIGINT)), "") << "finished once";
  EXPECT_EQ(Of(policy_.OnGoodbyeHeard()), "") << "heard after all";
  ExpectInterrupted(SIGTERM);
}

TEST_F(AgentPolicyTest, SignalAfterTheVerdictKillsTheWorkersAndKeepsTheVerdict) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(kFailure)), "stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnSignal(SIGINT)), "kill");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "goodbye ()");
  EXPECT_EQ(Of(policy_.OnGoodbyeHeard()), "finish");
  ExpectVerdict(kFailure);
}

TEST_F(AgentPolicyTest, VerdictAfterASignalKeepsTheInterruption) {
  Run();
  EXPECT_EQ(Of(policy_.OnSignal(SIGTERM)), "leaving (interrupted by SIGTERM); stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnDirective(kFailure)), "");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "goodbye (interrupted by SIGTERM)");
  ExpectInterrupted(SIGTERM);
}

TEST_F(AgentPolicyTest, DrainedNodeLeavesAndTellsTheOthersMeanwhile) {
  Run();
  EXPECT_EQ(Of(policy_.OnDrained(kDrains)), "ask to leave round 0 (Slurm drains it)");
  EXPECT_EQ(Of(policy_.OnMayLeave(kDrains)), "leaving (Slurm drains it); stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnMayLeave(kDrains)), "") << "it is leaving";
  EXPECT_EQ(Of(policy_.OnDrained(kDrains)), "") << "it is leaving";
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "a node is leaving", kLife})),
            "warn \"round 0 is over: a node is leaving\"");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "goodbye (Slurm drains it)") << "no join";
  EXPECT_EQ(Of(policy_.OnGoodbyeHeard()), "finish");
  ASSERT_TRUE(policy_.result().has_value());
  EXPECT_TRUE(std::holds_alternative<LeftEarly>(*policy_.result()));
}

// A spare node that was drained said nothing of it, and was given the place of another.
TEST_F(AgentPolicyTest, DrainedNodeThatWaitsForAPlaceAsks) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnDrained(kDrains)), "ask to leave round -1 (Slurm drains it)");
  EXPECT_EQ(Of(policy_.OnMayLeave(kDrains)), "goodbye (Slurm drains it)");
  EXPECT_EQ(Of(policy_.OnDrained(kDrains)), "") << "it is leaving";
  EXPECT_EQ(Of(policy_.OnDirective(Place(0))), "");
  EXPECT_EQ(Of(policy_.OnGoodbyeHeard()), "finish");
}

TEST_F(AgentPolicyTest, SignalToADrainedNodeLeavesItsWorkersTheirTime) {
  Run();
  EXPECT_EQ(Of(policy_.OnMayLeave(kDrains)), "leaving (Slurm drains it); stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnSignal(SIGTERM)), "");
  EXPECT_EQ(Of(policy_.OnSignal(SIGINT)), "kill");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "goodbye (interrupted by SIGTERM)");
  ExpectInterrupted(SIGTERM);
}

TEST_F(AgentPolicyTest, NodeThatMayLeaveDoesSoWhateverHasBecomeOfItsWorkersMeanwhile) {
  // Its worker has failed, and no Stop will come.
  Run();
  EXPECT_EQ(Of(policy_.OnFirstFailure(kExit3)), "report round 0 failed: exited with code 3");
  EXPECT_EQ(Of(policy_.OnMayLeave(kDrains)), "leaving (Slurm drains it)");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "goodbye (Slurm drains it)");
  // They have succeeded.
  policy_ = {};
  Run();
  EXPECT_EQ(Of(policy_.OnWorkersGone(true)), "report round 0 succeeded");
  EXPECT_EQ(Of(policy_.OnMayLeave(kDrains)), "goodbye (Slurm drains it)");
  // It was out of touch for too long, and has asked for the next round.
  policy_ = {};
  Run();
  (void)policy_.OnFenced("nothing was heard");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "join after 0");
  EXPECT_EQ(Of(policy_.OnMayLeave(kDrains)), "goodbye (Slurm drains it)");
  EXPECT_EQ(Of(policy_.OnMayLeave(kDrains)), "");
}

TEST_F(AgentPolicyTest, NodeThatIsDrainedWhenItsWorkersHaveSucceededWaitsForTheOthers) {
  Run();
  EXPECT_EQ(Of(policy_.OnWorkersGone(true)), "report round 0 succeeded");
  EXPECT_EQ(Of(policy_.OnDrained(kDrains)), "");
  EXPECT_EQ(Of(policy_.OnDirective(kSuccess)), "goodbye ()");
  ExpectVerdict(kSuccess);
}

TEST_F(AgentPolicyTest, RendezvousThatCannotBeReachedEndsTheRunWithoutAGoodbye) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnLost(kGone)), "finish");
  ExpectFailed<RendezvousFailed>("the rendezvous at a:1 is gone");
}

TEST_F(AgentPolicyTest, LostRendezvousStopsTheWorkersAndNoGoodbyeIsSaid) {
  Run();
  EXPECT_EQ(Of(policy_.OnLost(kGone)), "stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "finish");
  ExpectFailed<RendezvousFailed>("the rendezvous at a:1 is gone");
}

TEST_F(AgentPolicyTest, RendezvousLostBetweenStopAndTheNextRoundEndsTheRun) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "a restart", kLife})),
            "warn \"round 0 is over: a restart\"; stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnLost(kGone)), "");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "finish") << "no join";
  ExpectFailed<RendezvousFailed>("the rendezvous at a:1 is gone");
}

TEST_F(AgentPolicyTest, RendezvousLostWhileTheVerdictStopsTheWorkersKeepsTheVerdict) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(kFailure)), "stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnLost(kGone)), "");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "finish") << "nobody hears a goodbye";
  ExpectVerdict(kFailure);
}

TEST_F(AgentPolicyTest, RendezvousLostBeforeTheGoodbyeIsHeardEndsTheRun) {
  Run();
  EXPECT_EQ(Of(policy_.OnWorkersGone(true)), "report round 0 succeeded");
  EXPECT_EQ(Of(policy_.OnDirective(kSuccess)), "goodbye ()");
  EXPECT_EQ(Of(policy_.OnLost(kGone)), "finish");
  EXPECT_EQ(Of(policy_.OnLost(kGone)), "") << "finished once";
  ExpectVerdict(kSuccess);
}

TEST_F(AgentPolicyTest, RendezvousLostWhileWaitingForTheOtherNodesEndsTheRun) {
  Run();
  EXPECT_EQ(Of(policy_.OnWorkersGone(true)), "report round 0 succeeded");
  EXPECT_EQ(Of(policy_.OnLost(kGone)), "finish");
  ExpectFailed<RendezvousFailed>("the rendezvous at a:1 is gone");
}

TEST_F(AgentPolicyTest, RefusedJoinEndsTheRunWithTheReason) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnDirective(Refused{"job 'j' was started with --nnodes=3"})), "finish");
  EXPECT_EQ(Of(policy_.OnLost(kGone)), "") << "its stream ends, too";
  ExpectFailed<RendezvousFailed>(
      "the rendezvous refused this node: job 'j' was started with --nnodes=3");
}

TEST_F(AgentPolicyTest, NodeThatLostItsPlaceStopsItsWorkers) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(Refused{"nothing was heard from this node for 5 s"})),
            "stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnLost(kGone)), "");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "finish");
  ExpectFailed<RendezvousFailed>(
      "the rendezvous refused this node: nothing was heard from this node for 5 s");
}

TEST_F(AgentPolicyTest, NodeThatIsOutOfTouchForTooLongKillsItsWorkersAndJoinsAnew) {
  Run();
  EXPECT_EQ(
      Of(policy_.OnFenced("nothing was heard from the rendezvous")),
      "warn \"nothing was heard from the rendezvous; killing its workers and rejoining\"; kill");
  EXPECT_EQ(Of(policy_.OnFirstFailure(kExit3)), "") << "killed by us";
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "join after 0");
  // Back in touch it is told again what it had to do, and later that this was over.
  EXPECT_EQ(Of(policy_.OnDirective(Place(0))), "");
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "node b rejoined", kLife})), "");
  EXPECT_EQ(Of(policy_.OnDirective(Place(1))),
            "notice \"round 1: this node gets rank 1 by its address\"; start as group rank 1");
}

TEST_F(AgentPolicyTest, NodeThatIsOutOfTouchWhileItsWorkersEndKillsThem) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "a restart", kLife})),
            "warn \"round 0 is over: a restart\"; stop with SIGTERM");
  EXPECT_EQ(Of(policy_.OnFenced("nothing was heard")), "kill");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "join after 0");
}

TEST_F(AgentPolicyTest, OutOfTouchWithoutWorkersThereIsNothingToDo) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnFenced("nothing was heard")), "");
}

TEST_F(AgentPolicyTest, EvictedNodeKillsItsWorkersAndJoinsAnew) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(Evicted{"this node has lost its place"})),
            "warn \"this node has lost its place; killing its workers and rejoining\"; "
            "kill");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "join after 0");
  EXPECT_EQ(Of(policy_.OnDirective(Evicted{"this node has lost its place"})),
            "warn \"this node has lost its place; rejoining\"; join after 0");
}

// A node whose workers had succeeded was out of touch when the job did, and exited with 3.
TEST_F(AgentPolicyTest, NodeThatIsEvictedAfterItsWorkersHaveSucceededAsksHowTheJobGoesOn) {
  Run();
  EXPECT_EQ(Of(policy_.OnWorkersGone(true)), "report round 0 succeeded");
  EXPECT_EQ(Of(policy_.OnDirective(Evicted{"this node has lost its place"})),
            "warn \"this node has lost its place; its workers have succeeded; rejoining to learn "
            "how the job stands\"; join after 0");
  EXPECT_EQ(Of(policy_.OnDirective(Verdict{.sentence = "job 'j' succeeded"})), "goodbye ()");
  EXPECT_EQ(Of(policy_.OnGoodbyeHeard()), "finish");
  EXPECT_TRUE(std::holds_alternative<Verdict>(*policy_.result()));
}

TEST_F(AgentPolicyTest, NodeThatIsEvictedAfterAFailureHereJoinsAnew) {
  Run();
  EXPECT_EQ(Of(policy_.OnFirstFailure(kExit3)), "report round 0 failed: exited with code 3");
  EXPECT_EQ(Of(policy_.OnWorkersGone(false)), "");
  EXPECT_EQ(Of(policy_.OnDirective(Evicted{"it was restarted"})),
            "warn \"it was restarted; rejoining\"; join after 0");
}

TEST_F(AgentPolicyTest, StopOfARoundThatWasNeverHeardOfIsAnsweredWithAJoinForALaterOne) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "a restart", kLife})), "join after 0");
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "a restart", kLife})), "") << "told again";
  EXPECT_EQ(Of(policy_.OnDirective(Place(1))),
            "notice \"round 1: this node gets rank 1 by its address\"; start as group rank 1");
}

TEST_F(AgentPolicyTest, AssignmentThatIsToldAgainChangesNothing) {
  Run();
  EXPECT_EQ(Of(policy_.OnDirective(Place(0))), "");
  EXPECT_EQ(Of(policy_.OnDirective(Stop{0, "a restart", kLife + 1})), "")
      << "it is about another life of the job";
}

TEST_F(AgentPolicyTest, NodeThatCannotHoldItsPortLeavesWithTheReason) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnCannotStart(absl::UnavailableError("hold port 80: in use"))),
            "goodbye (hold port 80: in use)");
  EXPECT_EQ(Of(policy_.OnGoodbyeHeard()), "finish");
  ExpectFailed<NodeFailed>("hold port 80: in use");
}

TEST_F(AgentPolicyTest, NodeThatCannotStartItsWorkersLeavesWithTheReason) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnDirective(Place(0))),
            "notice \"round 0: this node gets rank 1 by its address\"; start as group rank 1");
  EXPECT_EQ(Of(policy_.OnCannotStart(absl::UnavailableError("make /logs: no space"))),
            "goodbye (make /logs: no space)");
  ExpectFailed<NodeFailed>("make /logs: no space");
}

TEST_F(AgentPolicyTest, WorkersThatFailWhileTheyAreStartedAreNotReportedAsStarted) {
  EXPECT_EQ(Of(policy_.Begin()), "join");
  EXPECT_EQ(Of(policy_.OnDirective(Place(0))),
            "notice \"round 0: this node gets rank 1 by its address\"; start as group rank 1");
  EXPECT_EQ(Of(policy_.OnFirstFailure({.what = "could not be started"})),
            "report round 0 failed: could not be started");
  EXPECT_EQ(Of(policy_.OnWorkersStarted()), "");
}

}  // namespace
}  // namespace muster::launcher
