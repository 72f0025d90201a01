// What an agent does, as transcripts; what it tells its user and the event log is
// agent_words_test.cc's.
#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "test/launcher/run/agent_transcript.h"

namespace muster::launcher {
namespace {

using rendezvous::Assignment;
using rendezvous::Evicted;
using rendezvous::Fenced;
using rendezvous::LeaveAnswer;
using rendezvous::Refused;
using rendezvous::Stop;
using rendezvous::Verdict;
using rendezvous::VerdictKind;
using rendezvous::Waiting;
using rendezvous::Welcome;
using rendezvous::WorkerFailure;
using worker::GroupEnd;

constexpr rendezvous::Incarnation kLife = 7;

Assignment ActsPlace(rendezvous::RoundNumber round) {
  return {.incarnation = kLife, .round = round};
}

const Verdict kActsSuccess{.kind = VerdictKind::kSucceeded, .sentence = "job 'j' succeeded"};
const Verdict kFailure{.kind = VerdictKind::kWorkerFailed, .sentence = "job 'j' failed"};
const WorkerFailure kExit3{.rank = 2, .exit_code = 3, .what = "exited with code 3"};
const absl::Status kActsGone = absl::UnavailableError("the rendezvous at a:1 is gone");

class AgentActsTest : public ::testing::Test, protected AgentTranscript {
 protected:
  AgentActsTest() : AgentTranscript(kDefault, Shows::kActs) {}

  // The way to where most transcripts begin.
  void Run(rendezvous::RoundNumber round = 0) {
    if (round == 0) {
      ASSERT_EQ(Begin(), "join");
    }
    ASSERT_EQ(OnDirective(ActsPlace(round)), absl::StrCat("start round ", round));
    ASSERT_EQ(OnWorkersStarted(), absl::StrCat("report round ", round, " started"));
  }

  std::string Gone(GroupEnd end = GroupEnd::kStopped) { return OnWorkersGone({.end = end}); }

  // It is drained, and the others go on without it.
  std::string MayLeave() {
    (void)OnDirective(Welcome{.version = rendezvous::kLeaveAnswers});
    (void)OnDrained("Slurm drains it");
    return OnDirective(LeaveAnswer{.may_leave = true});
  }
};

TEST_F(AgentActsTest, JobSucceedsInItsFirstRound) {
  EXPECT_EQ(Begin(), "join");
  EXPECT_EQ(OnDirective(Welcome{}), "");
  EXPECT_EQ(OnDirective(Waiting{0, "1 of 2 nodes are here", false}), "");
  EXPECT_EQ(OnDirective(ActsPlace(0)), "start round 0");
  EXPECT_EQ(OnWorkersStarted(), "report round 0 started");
  EXPECT_EQ(Gone(GroupEnd::kSucceeded), "report round 0 succeeded");
  EXPECT_EQ(Result(), "") << "other nodes may still run";
  EXPECT_EQ(OnDirective(kActsSuccess), "goodbye");
  EXPECT_EQ(OnGoodbyeHeard(), "finish");
  EXPECT_EQ(Result(), "job 'j' succeeded");
}

TEST_F(AgentActsTest, DirectiveOfAnUnknownKindSaysNothing) {
  EXPECT_EQ(Begin(), "join");
  EXPECT_EQ(OnDirective(Waiting{rendezvous::kNoRound, "", false}), "");
}

TEST_F(AgentActsTest, FailedWorkerIsReportedAtOnceAndStopBringsTheNextRound) {
  Run();
  EXPECT_EQ(OnFirstFailure(kExit3), "report round 0 failed: exited with code 3");
  EXPECT_EQ(OnDirective(Stop{0, "rank 2 exited with code 3 (restart 1 of 3)", kLife}), "")
      << "the group stops its workers by itself";
  EXPECT_EQ(Gone(), "join after 0");
  Run(1);
  EXPECT_EQ(Gone(GroupEnd::kSucceeded), "report round 1 succeeded");
}

TEST_F(AgentActsTest, FailureWithoutARestartLeftEndsWithTheVerdict) {
  Run();
  EXPECT_EQ(OnFirstFailure(kExit3), "report round 0 failed: exited with code 3");
  EXPECT_EQ(OnDirective(kFailure), "") << "the workers are already being stopped";
  EXPECT_EQ(Gone(), "goodbye");
  EXPECT_EQ(OnGoodbyeHeard(), "finish");
  EXPECT_EQ(Result(), "job 'j' failed");
}

TEST_F(AgentActsTest, FailureOfAnotherNodeStopsTheWorkersHere) {
  Run();
  EXPECT_EQ(OnDirective(Stop{0, "rank 0 failed", kLife}), "stop with SIGTERM");
  EXPECT_EQ(OnFirstFailure(kExit3), "") << "a worker that fails because it is stopped";
  EXPECT_EQ(Gone(), "join after 0");
}

TEST_F(AgentActsTest, StopWhileWaitingForTheOtherNodesJoinsAtOnce) {
  Run();
  EXPECT_EQ(Gone(GroupEnd::kSucceeded), "report round 0 succeeded");
  EXPECT_EQ(OnDirective(Stop{0, "node b was lost", kLife}), "join after 0");
  Run(1);
}

TEST_F(AgentActsTest, StopForAnOldRoundIsIgnored) {
  Run();
  EXPECT_EQ(OnDirective(Stop{0, "a restart", kLife}), "stop with SIGTERM");
  EXPECT_EQ(Gone(), "join after 0");
  Run(1);
  EXPECT_EQ(OnDirective(Stop{0, "a restart", kLife}), "");
  EXPECT_EQ(Gone(GroupEnd::kSucceeded), "report round 1 succeeded") << "round 1 ran on";
}

TEST_F(AgentActsTest, WorkersThatEndWhileBeingStoppedAreNoSuccess) {
  Run();
  EXPECT_EQ(OnDirective(Stop{0, "a restart", kLife}), "stop with SIGTERM");
  EXPECT_EQ(Gone(GroupEnd::kSucceeded), "join after 0");
}

TEST_F(AgentActsTest, FencedReportIsToldAndChangesNothing) {
  Run();
  EXPECT_EQ(OnDirective(Fenced{0, "fenced: round 0 is over"}), "");
  EXPECT_EQ(Gone(GroupEnd::kSucceeded), "report round 0 succeeded");
}

TEST_F(AgentActsTest, AssignmentWhileWorkersRunStartsNothing) {
  Run();
  EXPECT_EQ(OnDirective(ActsPlace(1)), "");
}

TEST_F(AgentActsTest, VerdictWhileRunningStopsTheWorkersFirst) {
  Run();
  EXPECT_EQ(OnDirective(kFailure), "stop with SIGTERM");
  EXPECT_EQ(Gone(), "goodbye");
  EXPECT_EQ(OnGoodbyeHeard(), "finish");
  EXPECT_EQ(Result(), "job 'j' failed");
}

TEST_F(AgentActsTest, SpareLeavesWithTheVerdict) {
  EXPECT_EQ(Begin(), "join");
  EXPECT_EQ(OnDirective(Waiting{0, "this node is a spare", true}), "");
  EXPECT_EQ(OnDirective(kActsSuccess), "goodbye");
  EXPECT_EQ(OnGoodbyeHeard(), "finish");
  EXPECT_EQ(Result(), "job 'j' succeeded");
}

TEST_F(AgentActsTest, VerdictCountsOverAStopThatCameBefore) {
  Run();
  EXPECT_EQ(OnDirective(Stop{0, "a restart", kLife}), "stop with SIGTERM");
  EXPECT_EQ(OnDirective(kFailure), "");
  EXPECT_EQ(Gone(), "goodbye") << "no join";
  EXPECT_EQ(Result(), "job 'j' failed");
}

TEST_F(AgentActsTest, SignalWhileAFailureStopsTheWorkersDoesNotStopThemAgain) {
  Run();
  EXPECT_EQ(OnFirstFailure(kExit3), "report round 0 failed: exited with code 3");
  EXPECT_EQ(OnSignal(SIGTERM), "leaving (interrupted by SIGTERM)");
  EXPECT_EQ(OnDirective(Stop{0, "a restart", kLife}), "");
  EXPECT_EQ(Gone(), "goodbye (interrupted by SIGTERM)") << "no join";
  EXPECT_EQ(Result(), "interrupted by SIGTERM");
}

TEST_F(AgentActsTest, SignalWhileJoiningLeavesAtOnce) {
  EXPECT_EQ(Begin(), "join");
  EXPECT_EQ(OnSignal(SIGHUP), "goodbye (interrupted by SIGHUP)");
  EXPECT_EQ(OnDirective(ActsPlace(0)), "") << "an Assignment that crossed the goodbye";
  EXPECT_EQ(OnGoodbyeHeard(), "finish");
  EXPECT_EQ(Result(), "interrupted by SIGHUP");
}

TEST_F(AgentActsTest, SignalWhileWaitingForTheOtherNodesLeavesAtOnce) {
  Run();
  EXPECT_EQ(Gone(GroupEnd::kSucceeded), "report round 0 succeeded");
  EXPECT_EQ(OnSignal(SIGTERM), "goodbye (interrupted by SIGTERM)");
  EXPECT_EQ(Result(), "interrupted by SIGTERM");
}

TEST_F(AgentActsTest, GoodbyeThatIsNeverHeardEndsWithTheNextSignal) {
  EXPECT_EQ(Begin(), "join");
  EXPECT_EQ(OnSignal(SIGTERM), "goodbye (interrupted by SIGTERM)");
  EXPECT_EQ(OnSignal(SIGINT), "finish");
  EXPECT_EQ(OnSignal(SIGINT), "") << "finished once";
  EXPECT_EQ(OnGoodbyeHeard(), "") << "heard after all";
  EXPECT_EQ(Result(), "interrupted by SIGTERM");
}

TEST_F(AgentActsTest, SignalAfterTheVerdictKillsTheWorkersAndKeepsTheVerdict) {
  Run();
  EXPECT_EQ(OnDirective(kFailure), "stop with SIGTERM");
  EXPECT_EQ(OnSignal(SIGINT), "kill");
  EXPECT_EQ(Gone(), "goodbye");
  EXPECT_EQ(OnGoodbyeHeard(), "finish");
  EXPECT_EQ(Result(), "job 'j' failed");
}

TEST_F(AgentActsTest, VerdictAfterASignalKeepsTheInterruption) {
  Run();
  EXPECT_EQ(OnSignal(SIGTERM), "leaving (interrupted by SIGTERM); stop with SIGTERM");
  EXPECT_EQ(OnDirective(kFailure), "");
  EXPECT_EQ(Gone(), "goodbye (interrupted by SIGTERM)");
  EXPECT_EQ(Result(), "interrupted by SIGTERM");
}

TEST_F(AgentActsTest, SignalToADrainedNodeLeavesItsWorkersTheirTime) {
  Run();
  EXPECT_EQ(MayLeave(), "leaving (Slurm drains it); stop with SIGTERM");
  EXPECT_EQ(OnSignal(SIGTERM), "");
  EXPECT_EQ(OnSignal(SIGINT), "kill");
  EXPECT_EQ(Gone(), "goodbye (interrupted by SIGTERM)");
  EXPECT_EQ(Result(), "interrupted by SIGTERM");
}

TEST_F(AgentActsTest, NodeWhoseWorkerHasFailedMayLeave) {
  Run();
  EXPECT_EQ(OnFirstFailure(kExit3), "report round 0 failed: exited with code 3");
  EXPECT_EQ(MayLeave(), "leaving (Slurm drains it)") << "no Stop will come";
  EXPECT_EQ(Gone(), "goodbye (Slurm drains it)");
}

TEST_F(AgentActsTest, NodeWhoseWorkersHaveSucceededMayLeave) {
  Run();
  EXPECT_EQ(Gone(GroupEnd::kSucceeded), "report round 0 succeeded");
  EXPECT_EQ(MayLeave(), "goodbye (Slurm drains it)");
}

TEST_F(AgentActsTest, NodeThatHasAskedForTheNextRoundMayLeave) {
  Run();
  EXPECT_EQ(OnFenced("nothing was heard"), "kill");
  EXPECT_EQ(Gone(), "join after 0");
  EXPECT_EQ(MayLeave(), "goodbye (Slurm drains it)");
  EXPECT_EQ(MayLeave(), "");
}

TEST_F(AgentActsTest, NodeThatIsDrainedWhenItsWorkersHaveSucceededWaitsForTheOthers) {
  Run();
  EXPECT_EQ(Gone(GroupEnd::kSucceeded), "report round 0 succeeded");
  EXPECT_EQ(OnDrained("Slurm drains it"), "");
  EXPECT_EQ(OnDirective(kActsSuccess), "goodbye");
}

TEST_F(AgentActsTest, RendezvousThatCannotBeReachedEndsTheRunWithoutAGoodbye) {
  EXPECT_EQ(Begin(), "join");
  EXPECT_EQ(OnLost(kActsGone), "finish");
  EXPECT_EQ(Result(), "rendezvous: the rendezvous at a:1 is gone");
}

TEST_F(AgentActsTest, RendezvousLostBetweenStopAndTheNextRoundEndsTheRun) {
  Run();
  EXPECT_EQ(OnDirective(Stop{0, "a restart", kLife}), "stop with SIGTERM");
  EXPECT_EQ(OnLost(kActsGone), "");
  EXPECT_EQ(Gone(), "finish") << "no join";
  EXPECT_EQ(Result(), "rendezvous: the rendezvous at a:1 is gone");
}

TEST_F(AgentActsTest, RendezvousLostWhileTheVerdictStopsTheWorkersKeepsTheVerdict) {
  Run();
  EXPECT_EQ(OnDirective(kFailure), "stop with SIGTERM");
  EXPECT_EQ(OnLost(kActsGone), "");
  EXPECT_EQ(Gone(), "finish") << "nobody hears a goodbye";
  EXPECT_EQ(Result(), "job 'j' failed");
}

TEST_F(AgentActsTest, RendezvousLostBeforeTheGoodbyeIsHeardEndsTheRun) {
  Run();
  EXPECT_EQ(Gone(GroupEnd::kSucceeded), "report round 0 succeeded");
  EXPECT_EQ(OnDirective(kActsSuccess), "goodbye");
  EXPECT_EQ(OnLost(kActsGone), "finish");
  EXPECT_EQ(OnLost(kActsGone), "") << "finished once";
  EXPECT_EQ(Result(), "job 'j' succeeded");
}

TEST_F(AgentActsTest, RendezvousLostWhileWaitingForTheOtherNodesEndsTheRun) {
  Run();
  EXPECT_EQ(Gone(GroupEnd::kSucceeded), "report round 0 succeeded");
  EXPECT_EQ(OnLost(kActsGone), "finish");
  EXPECT_EQ(Result(), "rendezvous: the rendezvous at a:1 is gone");
}

TEST_F(AgentActsTest, RefusedJoinEndsTheRunWithTheReason) {
  EXPECT_EQ(Begin(), "join");
  EXPECT_EQ(OnDirective(Refused{"job 'j' was started with --nnodes=3"}), "finish");
  EXPECT_EQ(OnLost(kActsGone), "") << "its stream ends, too";
  EXPECT_EQ(Result(),
            "rendezvous: the rendezvous refused this node: job 'j' was started with --nnodes=3");
}

TEST_F(AgentActsTest, NodeThatIsOutOfTouchForTooLongKillsItsWorkersAndRejoins) {
  Run();
  EXPECT_EQ(OnFenced("nothing was heard from the rendezvous"), "kill");
  EXPECT_EQ(OnFirstFailure(kExit3), "") << "killed by us";
  EXPECT_EQ(Gone(), "join after 0");
  // Back in touch it is told again what it had to do, and later that this was over.
  EXPECT_EQ(OnDirective(ActsPlace(0)), "");
  EXPECT_EQ(OnDirective(Stop{0, "node b rejoined", kLife}), "");
  EXPECT_EQ(OnDirective(ActsPlace(1)), "start round 1");
}

TEST_F(AgentActsTest, NodeThatIsOutOfTouchWhileItsWorkersEndKillsThem) {
  Run();
  EXPECT_EQ(OnDirective(Stop{0, "a restart", kLife}), "stop with SIGTERM");
  EXPECT_EQ(OnFenced("nothing was heard"), "kill");
  EXPECT_EQ(Gone(), "join after 0");
}

TEST_F(AgentActsTest, EvictedNodeKillsItsWorkersAndRejoins) {
  Run();
  EXPECT_EQ(OnDirective(Evicted{"this node has lost its place"}), "kill");
  EXPECT_EQ(Gone(), "join after 0");
  EXPECT_EQ(OnDirective(Evicted{"this node has lost its place"}), "join after 0");
}

TEST_F(AgentActsTest, StopOfARoundThatWasNeverHeardOfIsAnsweredWithAJoinForALaterOne) {
  EXPECT_EQ(Begin(), "join");
  EXPECT_EQ(OnDirective(Stop{0, "a restart", kLife}), "join after 0");
  EXPECT_EQ(OnDirective(Stop{0, "a restart", kLife}), "") << "told again";
  EXPECT_EQ(OnDirective(ActsPlace(1)), "start round 1");
}

TEST_F(AgentActsTest, AssignmentThatIsToldAgainChangesNothing) {
  Run();
  EXPECT_EQ(OnDirective(ActsPlace(0)), "");
  EXPECT_EQ(OnDirective(Stop{0, "a restart", kLife + 1}), "")
      << "it is about another life of the job";
}

TEST_F(AgentActsTest, NodeThatCannotHoldItsPortLeavesWithTheReason) {
  EXPECT_EQ(Begin(), "join");
  EXPECT_EQ(OnCannotStart(absl::UnavailableError("hold port 80: in use")),
            "goodbye (hold port 80: in use)");
  EXPECT_EQ(OnGoodbyeHeard(), "finish");
  EXPECT_EQ(Result(), "node: hold port 80: in use");
}

TEST_F(AgentActsTest, NodeThatCannotStartItsWorkersLeavesWithTheReason) {
  EXPECT_EQ(Begin(), "join");
  EXPECT_EQ(OnDirective(ActsPlace(0)), "start round 0");
  EXPECT_EQ(OnCannotStart(absl::UnavailableError("make /logs: no space")),
            "goodbye (make /logs: no space)");
  EXPECT_EQ(Result(), "node: make /logs: no space");
}

TEST_F(AgentActsTest, WorkersThatFailWhileTheyAreStartedAreNotReportedAsStarted) {
  EXPECT_EQ(Begin(), "join");
  EXPECT_EQ(OnDirective(ActsPlace(0)), "start round 0");
  EXPECT_EQ(OnFirstFailure({.what = "could not be started"}),
            "report round 0 failed: could not be started");
  EXPECT_EQ(OnWorkersStarted(), "");
}

}  // namespace
}  // namespace muster::launcher
