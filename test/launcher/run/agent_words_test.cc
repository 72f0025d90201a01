// What an agent does and says: what only this node knows, and what its user and the event log are
// told (agent_acts_test.cc has what it does alone).
#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "test/launcher/run/agent_transcript.h"

namespace muster::launcher {
namespace {

using rendezvous::Assignment;
using rendezvous::Evicted;
using rendezvous::LeaveAnswer;
using rendezvous::Stop;
using rendezvous::TimePoint;
using rendezvous::Verdict;
using rendezvous::VerdictKind;
using std::chrono::seconds;
using worker::GroupEnd;
using worker::GroupResult;

constexpr TimePoint At(seconds since_start) {
  return TimePoint(since_start);
}

Assignment Place(rendezvous::RoundNumber round) {
  return {.incarnation = 7, .round = round, .rank_reason = "is the first"};
}

Assignment PlaceAmong(rendezvous::RoundNumber round, int nodes) {
  Assignment place = Place(round);
  place.group_world_size = nodes;
  return place;
}

constexpr int kOlder = rendezvous::kLeaveAnswers - 1;

// Of two to three nodes, and about to have a place.
class Elastic : public AgentTranscript {
 public:
  explicit Elastic(bool serves_rendezvous, int version = kOlder, int min_nodes = 2)
      : AgentTranscript({.grace = seconds(30),
                         .min_nodes = min_nodes,
                         .max_nodes = 3,
                         .serves_rendezvous = serves_rendezvous}) {
    Begin();
    OnDirective(rendezvous::Welcome{.version = version});
  }
};

const char kDrains[] = "Slurm drains it";
const Verdict kSuccess{.kind = VerdictKind::kSucceeded, .sentence = "the job has succeeded"};
const absl::Status kGone = absl::UnavailableError("the rendezvous is gone");
const absl::Status kNoGpu = absl::FailedPreconditionError("no GPU");

class AgentWordsTest : public ::testing::Test, protected AgentTranscript {
 protected:
  // The way to where most transcripts begin.
  void Run() {
    ASSERT_EQ(Begin(), "[joining]; join");
    ASSERT_EQ(OnDirective(Place(0)), "[assigned: is the first]; start round 0");
    ASSERT_EQ(OnWorkersStarted(), "[workers_started]; report round 0 started");
  }

  AgentTranscript checked_{{.checks_health = true, .grace = seconds(30)}};
};

TEST_F(AgentWordsTest, JobSucceedsInItsFirstRound) {
  Run();
  EXPECT_EQ(core().round(), 0);
  EXPECT_EQ(OnWorkersGone({.end = GroupEnd::kSucceeded}),
            "[workers_gone: succeeded]; report round 0 succeeded");
  EXPECT_EQ(OnDirective(kSuccess), "[verdict: the job has succeeded]; goodbye");
  EXPECT_EQ(OnGoodbyeHeard(), "finish");
  EXPECT_EQ(Result(), "the job has succeeded");
}

TEST_F(AgentWordsTest, FailedWorkerIsToldToTheUserAndToTheRendezvous) {
  Run();
  EXPECT_EQ(OnFirstFailure({.rank = 3, .pid = 17, .what = "exited with code 3"}),
            "\"rank 3 exited with code 3\"; [worker_failed: exited with code 3]; report round 0 "
            "failed: exited with code 3");
  EXPECT_EQ(OnWorkersGone({.end = GroupEnd::kFailed}), "[workers_gone: failed]");
  EXPECT_EQ(OnDirective(Stop{0, "a restart", 7}),
            "[told_to_stop: a restart]; \"round 0 is over: a restart\"; [joining]; join after 0");
}

TEST_F(AgentWordsTest, SignalEndsTheRun) {
  Run();
  EXPECT_EQ(
      OnSignal(SIGINT),
      "\"received SIGINT; the workers have 30 s to stop, and a second signal kills them at once\"; "
      "[signal: SIGINT]; leaving (interrupted by SIGINT); [stopping: SIGINT]; stop with SIGINT");
  EXPECT_EQ(OnWorkersGone({.end = GroupEnd::kStopped}),
            "[workers_gone: stopped]; goodbye (interrupted by SIGINT)");
}

// Two nodes that were drained together left a job that could spare one of them.
TEST_F(AgentWordsTest, DrainedNodeAsksWhetherTheJobCanSpareIt) {
  Elastic core(/*serves_rendezvous=*/false, rendezvous::kLeaveAnswers);
  core.OnDirective(PlaceAmong(0, 2));
  const std::string asks = "ask to leave round 0 (Slurm drains it)";
  EXPECT_EQ(core.OnDrained(kDrains), asks) << "a spare may wait";
  const LeaveAnswer stay{.why_not = "the job needs 2 nodes, and has 2"};
  EXPECT_EQ(
      core.OnDirective(stay),
      "\"this node stays in the job, although Slurm drains it: the job needs 2 nodes, and has 2\"");
  EXPECT_EQ(core.OnDrained(kDrains), asks);
  EXPECT_EQ(core.OnDirective(stay), "") << "it was said";
  EXPECT_EQ(core.OnDrained(kDrains), asks);
  EXPECT_EQ(core.OnDirective(LeaveAnswer{.may_leave = true}, At(seconds(3))),
            "\"this node leaves the job, as Slurm drains it; the workers have 30 s to stop\"; "
            "[node_drained: Slurm drains it]; leaving (Slurm drains it); [stopping: SIGTERM]; stop "
            "with SIGTERM");
  EXPECT_EQ(core.OnDirective(LeaveAnswer{.may_leave = true}, At(seconds(4))), "");
  EXPECT_EQ(core.OnDrained(kDrains), "");
  EXPECT_EQ(core.OnDirective(Stop{0, "a node is leaving", 7}),
            "[told_to_stop: a node is leaving]; \"round 0 is over: a node is leaving\"");
  EXPECT_EQ(core.OnWorkersGone({.end = GroupEnd::kStopped}),
            "[workers_gone: stopped]; goodbye (Slurm drains it)");
}

// A spare node that was drained was given the place of a node that left, and the job stopped again
// when it asked in its turn.
TEST_F(AgentWordsTest, DrainedSpareNodeLeavesBeforeItHasAPlace) {
  Elastic core(/*serves_rendezvous=*/false, rendezvous::kLeaveAnswers);
  const std::string asks = "ask to leave round -1 (Slurm drains it)";
  EXPECT_EQ(core.OnDrained(kDrains), asks);
  const LeaveAnswer stay{.why_not = "the job needs 2 nodes, and has 2"};
  EXPECT_EQ(
      core.OnDirective(stay),
      "\"this node stays in the job, although Slurm drains it: the job needs 2 nodes, and has 2\"");
  EXPECT_EQ(core.OnDrained(kDrains), asks);
  EXPECT_EQ(core.OnDirective(LeaveAnswer{.may_leave = true}),
            "\"this node leaves the job, as Slurm drains it\"; [node_drained: Slurm drains it]; "
            "goodbye (Slurm drains it)");
  EXPECT_EQ(core.OnDrained(kDrains), "");
  EXPECT_EQ(core.OnDirective(Place(0)), "");
  EXPECT_EQ(core.OnGoodbyeHeard(), "finish");
  EXPECT_EQ(core.Result(), "left: Slurm drains it");
}

TEST_F(AgentWordsTest, DrainedNodeThatServesTheRendezvousAsksNobody) {
  Elastic core(/*serves_rendezvous=*/true, rendezvous::kLeaveAnswers);
  EXPECT_EQ(core.OnDrained(kDrains), "") << "there is no round yet";
  core.OnDirective(PlaceAmong(0, 3));
  EXPECT_EQ(
      core.OnDrained(kDrains),
      "\"this node stays in the job, although Slurm drains it: the rendezvous is served here\"");
}

TEST_F(AgentWordsTest, AnswerThatComesWhenTheWorkersAreStoppingChangesOnlyWhatFollows) {
  Elastic core(/*serves_rendezvous=*/false, rendezvous::kLeaveAnswers);
  core.OnDirective(PlaceAmong(0, 3));
  core.OnDrained(kDrains);
  core.OnDirective(Stop{0, "a node has come", 7});
  EXPECT_EQ(core.OnDirective(LeaveAnswer{.why_not = "it is needed"}),
            "\"this node stays in the job, although Slurm drains it: it is needed\"");
  EXPECT_EQ(core.OnDirective(LeaveAnswer{.may_leave = true}),
            "\"this node leaves the job, as Slurm drains it\"; [node_drained: Slurm drains it]; "
            "leaving (Slurm drains it)");
  EXPECT_EQ(core.OnWorkersGone({.end = GroupEnd::kStopped}),
            "[workers_gone: stopped]; goodbye (Slurm drains it)");
}

// A job of MIN:MAX nodes went on with a node that was to be repaired, until the whole job ended.
// Beside a rendezvous that does not answer each node decides for itself.
TEST_F(AgentWordsTest, DrainedNodeLeavesAJobThatCanSpareIt) {
  Elastic core(/*serves_rendezvous=*/false);
  EXPECT_EQ(core.OnDrained(kDrains), "") << "there is no round yet";
  core.OnDirective(PlaceAmong(0, 3));
  EXPECT_EQ(core.OnDrained(kDrains),
            "\"this node leaves the job, as Slurm drains it; the workers have 30 s to stop\"; "
            "[node_drained: Slurm drains it]; leaving (Slurm drains it); [stopping: SIGTERM]; stop "
            "with SIGTERM");
  EXPECT_EQ(core.OnDrained(kDrains), "");
  EXPECT_EQ(core.OnWorkersGone({.end = GroupEnd::kStopped}),
            "[workers_gone: stopped]; goodbye (Slurm drains it)");
  EXPECT_EQ(core.OnGoodbyeHeard(), "finish");
}

TEST_F(AgentWordsTest, DrainedNodeThatTheJobNeedsSaysSoOnce) {
  const auto said = [](AgentTranscript& core, int nodes) {
    core.OnDirective(PlaceAmong(0, nodes));
    const std::string first = core.OnDrained(kDrains);
    EXPECT_EQ(core.OnDrained(kDrains), "");
    return first;
  };
  const std::string stays = "\"this node stays in the job, although Slurm drains it: the ";
  Elastic fixed(/*serves_rendezvous=*/false, kOlder, /*min_nodes=*/3);
  EXPECT_EQ(said(fixed, 3),
            stays + "job needs all of its 3 nodes; with --nnodes=MIN:MAX it could go on without\"");
  Elastic serves(/*serves_rendezvous=*/true);
  EXPECT_EQ(said(serves, 3), stays + "rendezvous is served here\"");
  Elastic short_of_nodes(/*serves_rendezvous=*/false);
  EXPECT_EQ(said(short_of_nodes, 2), stays + "job needs 2 nodes, and has 2\"");
}

TEST_F(AgentWordsTest, DrainedNodeLeavesOnceThereAreEnoughOthers) {
  Elastic core(/*serves_rendezvous=*/false);
  core.OnDirective(PlaceAmong(0, 2));
  core.OnDrained(kDrains);
  core.OnDirective(Stop{0, "a node has come", 7});
  EXPECT_EQ(core.OnDrained(kDrains), "") << "the workers are being stopped";
  core.OnWorkersGone({.end = GroupEnd::kStopped});
  core.OnDirective(PlaceAmong(1, 3));
  EXPECT_EQ(core.OnDrained(kDrains).substr(0, 26), "\"this node leaves the job,");
}

// "I pressed Ctrl-C, nothing happened, and nobody told me what to do or what had been in the way."
TEST_F(AgentWordsTest, WorkersThatNeedSigkillAreNamed) {
  Run();
  EXPECT_EQ(OnSignal(SIGTERM).substr(0, 26), "\"received SIGTERM; the wor");
  EXPECT_EQ(OnSignal(SIGTERM),
            "\"received SIGTERM; killing the workers\"; [signal: SIGTERM]; kill");
  const auto exit = [](int rank, int signal, bool stopped) {
    return worker::WorkerExit{.rank = rank,
                              .pid = 17,
                              .status = worker::ExitStatus{.signal = signal},
                              .stopped_by_group = stopped};
  };
  EXPECT_EQ(
      OnWorkersGone({.end = GroupEnd::kStopped,
                     .exits = {exit(0, SIGKILL, true), exit(1, SIGTERM, true),
                               exit(2, SIGKILL, true), exit(3, SIGKILL, false)}}),
      "[workers_gone: stopped]; \"ranks 0, 2 did not stop when asked to and needed SIGKILL\"; "
      "goodbye (interrupted by SIGTERM)");
}

TEST_F(AgentWordsTest, WorkersThatWereNotToldToStopAreNotBlamedForBeingKilled) {
  Run();
  EXPECT_EQ(OnFenced("nothing was heard").substr(0, 12), "[self_fenced");
  EXPECT_EQ(OnWorkersGone({.end = GroupEnd::kStopped,
                           .exits = {{.rank = 0,
                                      .pid = 17,
                                      .status = worker::ExitStatus{.signal = SIGKILL},
                                      .stopped_by_group = true}}}),
            "[workers_gone: stopped]; [joining]; join after 0");
}

// "It said that a second signal kills them at once, and a second `kill` did nothing."
TEST_F(AgentWordsTest, SignalSaysHowLongTheWorkersHaveAndWhatKillsThem) {
  const auto said = [](int signal, std::chrono::milliseconds grace, bool in_slurm) {
    AgentTranscript core({.grace = grace, .sigterm_counts_once = in_slurm});
    core.Begin();
    core.OnDirective(Place(0));
    const std::string all = core.OnSignal(signal);
    return all.substr(1, all.find('"', 1) - 1);
  };
  EXPECT_EQ(said(SIGTERM, seconds(30), /*in_slurm=*/true),
            "received SIGTERM; the workers have 30 s to stop, and SIGINT kills them at once; "
            "SIGTERM does not, as Slurm repeats it");
  EXPECT_EQ(
      said(SIGINT, seconds(30), /*in_slurm=*/true),
      "received SIGINT; the workers have 30 s to stop, and a second signal kills them at once");
  EXPECT_EQ(said(SIGTERM, seconds(0), /*in_slurm=*/false), "received SIGTERM; killing the workers");
  EXPECT_EQ(said(SIGTERM, std::chrono::milliseconds::max(), /*in_slurm=*/false),
            "received SIGTERM; the workers may take as long as they need to stop, and a second "
            "signal kills them at once");
  Run();
  OnFirstFailure({.rank = 3, .what = "exited with code 3"});
  EXPECT_EQ(OnSignal(SIGTERM),
            "\"received SIGTERM; the workers are already being stopped, and a second signal kills "
            "them at once\"; [signal: SIGTERM]; leaving (interrupted by SIGTERM)");
}

TEST_F(AgentWordsTest, LostRendezvousLeavesTheWorkersTheirWholeGrace) {
  Run();
  core().OnDeadline(At(seconds(3)));
  // The client takes the deadline back before it gives up: nobody gives this node's ranks away.
  core().OnDeadline(std::nullopt);
  EXPECT_EQ(OnLost(kGone),
            "[rendezvous_lost: the rendezvous is gone]; [stopping: SIGTERM]; stop with SIGTERM");
  EXPECT_EQ(core().deadline(), std::nullopt);
  EXPECT_EQ(OnWorkersGone({.end = GroupEnd::kStopped}), "[workers_gone: stopped]; finish");
  EXPECT_EQ(Result(), "rendezvous: the rendezvous is gone");
}

// Two ranks ran twice for a moment: an Assignment that was held up started workers, which only then
// were found to be too late and killed.
TEST_F(AgentWordsTest, AssignmentThatComesAfterTheDeadlineStartsNobody) {
  EXPECT_EQ(Begin(), "[joining]; join");
  core().OnDeadline(At(seconds(3)));
  EXPECT_EQ(OnDirective(Place(0), At(seconds(3))),
            "[self_fenced: the workers may not run any longer without a rendezvous]; \"the workers "
            "may not run any longer without a rendezvous; rejoining\"; [joining]; join after 0");
  EXPECT_EQ(core().round(), 0);
  EXPECT_EQ(OnDirective(Place(0), At(seconds(3))), "") << "told again";
  core().OnDeadline(At(seconds(9)));
  EXPECT_EQ(OnDirective(Place(1), At(seconds(4))), "[assigned: is the first]; start round 1");
}

TEST_F(AgentWordsTest, WorkersThatTheGuardKilledAreNoFailure) {
  Run();
  EXPECT_EQ(
      OnLostTouch(),
      "[self_fenced: the workers may not run any longer without a rendezvous]; \"the workers may "
      "not run any longer without a rendezvous; killing its workers and rejoining\"; kill");
  EXPECT_EQ(OnWorkersGone({.end = GroupEnd::kFailed}),
            "[workers_gone: failed]; [joining]; join after 0");
}

// A node whose workers had succeeded was out of touch when the job did, and exited with 3.
TEST_F(AgentWordsTest, NodeThatIsEvictedAfterItsWorkersHaveSucceededAsksHowTheJobGoesOn) {
  Run();
  (void)OnWorkersGone({.end = GroupEnd::kSucceeded});
  EXPECT_EQ(OnDirective(Evicted{"it was silent"}),
            "[evicted: it was silent]; \"it was silent; its workers have succeeded; rejoining to "
            "learn the job's state\"; [joining]; join after 0");
  EXPECT_EQ(OnDirective(kSuccess), "[verdict: the job has succeeded]; goodbye");
  EXPECT_EQ(OnGoodbyeHeard(), "finish");
  EXPECT_EQ(Result(), "the job has succeeded");
}

TEST_F(AgentWordsTest, NodeThatIsFencedWithoutWorkersTellsNobody) {
  EXPECT_EQ(Begin(), "[joining]; join");
  EXPECT_EQ(OnFenced("nothing was heard"), "");
}

TEST_F(AgentWordsTest, HealthIsCheckedBeforeEachJoin) {
  EXPECT_EQ(checked_.Begin(), "[joining]; check health");
  EXPECT_EQ(checked_.OnHealth(absl::OkStatus()), "join");
  EXPECT_EQ(checked_.OnDirective(Place(0)), "[assigned: is the first]; start round 0");
  EXPECT_EQ(checked_.OnLostTouch().substr(0, 12), "[self_fenced");
  EXPECT_EQ(checked_.OnWorkersGone({.end = GroupEnd::kFailed}),
            "[workers_gone: failed]; [joining]; check health");
  EXPECT_EQ(checked_.OnHealth(kNoGpu), "[health_check_failed: no GPU]; join after 0 unfit: no GPU");
}

TEST_F(AgentWordsTest, NodeThatWasUnfitMayBeFitTheNextTime) {
  EXPECT_EQ(checked_.Begin(), "[joining]; check health");
  EXPECT_EQ(checked_.OnHealth(kNoGpu), "[health_check_failed: no GPU]; join unfit: no GPU");
  EXPECT_EQ(checked_.OnDirective(Evicted{"it was silent"}),
            "[evicted: it was silent]; \"it was silent; rejoining\"; [joining]; check health");
  EXPECT_EQ(checked_.OnHealth(absl::OkStatus()), "join");
}

TEST_F(AgentWordsTest, HealthCheckBeginsAgainWhenTheRoundItWasForIsOver) {
  EXPECT_EQ(checked_.Begin(), "[joining]; check health");
  EXPECT_EQ(checked_.OnDirective(Stop{0, "a restart", 7}),
            "[told_to_stop: a restart]; [joining]; check health");
  EXPECT_EQ(checked_.OnHealth(absl::OkStatus()), "join after 0");
  EXPECT_EQ(checked_.OnHealth(absl::OkStatus()), "") << "that of the first check";
}

TEST_F(AgentWordsTest, SignalDuringAHealthCheckLeavesAtOnce) {
  EXPECT_EQ(checked_.Begin(), "[joining]; check health");
  EXPECT_EQ(checked_.OnSignal(SIGTERM),
            "\"received SIGTERM\"; [signal: SIGTERM]; goodbye (interrupted by SIGTERM)");
  EXPECT_EQ(checked_.OnHealth(absl::OkStatus()), "") << "it had ended just before";
}

TEST_F(AgentWordsTest, LostRendezvousEndsAHealthCheck) {
  EXPECT_EQ(checked_.Begin(), "[joining]; check health");
  EXPECT_EQ(checked_.OnLost(kGone), "[rendezvous_lost: the rendezvous is gone]; finish");
}

TEST_F(AgentWordsTest, NodeWithAWorkerThatCannotBeKilledIsNeverFitAgain) {
  EXPECT_EQ(checked_.Begin(), "[joining]; check health");
  EXPECT_EQ(checked_.OnHealth(absl::OkStatus()), "join");
  EXPECT_EQ(checked_.OnDirective(Place(0)), "[assigned: is the first]; start round 0");
  EXPECT_EQ(checked_.OnLostTouch().substr(0, 12), "[self_fenced");
  const GroupResult stuck{
      .end = GroupEnd::kFailed,
      .exits = {{.rank = 2, .pid = 17, .status = worker::ExitStatus{.signal = SIGKILL}},
                {.rank = 3, .pid = 18, .stuck = "is in state D"}}};
  EXPECT_EQ(checked_.OnWorkersGone(stuck),
            "[workers_gone: failed]; [joining]; join after 0 unfit: rank 3 (pid 18) cannot be "
            "killed: it is in state D")
      << "there is nothing to check";
  EXPECT_EQ(checked_.OnDirective(Evicted{"it was silent"}, At(seconds(9))),
            "[evicted: it was silent]; \"it was silent; rejoining\"; [joining]; join after 0 "
            "unfit: rank 3 (pid 18) cannot be killed: it is in state D");
}

// A straggler was said on the terminal, and was in no event log.
TEST_F(AgentWordsTest, StragglersAreEvents) {
  using rendezvous::Notice;
  Begin();
  OnDirective(Place(4));
  EXPECT_EQ(OnDirective(Notice{"rank 3 is slow", Notice::Kind::kStraggler, 3}),
            "[straggler: rank 3 is slow]; \"rank 3 is slow\"");
  EXPECT_EQ(last_event().round, 4);
  EXPECT_EQ(last_event().rank, 3);
  EXPECT_EQ(OnDirective(Notice{"it is not", Notice::Kind::kStragglerOver}),
            "[straggler_over: it is not]; \"it is not\"");
  EXPECT_EQ(OnDirective(Notice{"another thing"}, At(seconds(3))), "\"another thing\"");
}

}  // namespace
}  // namespace muster::launcher
