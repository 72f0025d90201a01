// An agent's decisions beyond its policy (agent_policy_test.cc), as transcripts: events and their
// times go in; the actions come out, on one line, in order. Events for observers are in brackets,
// with their cause; notices are left out.
#include "launcher/agent/agent_core.h"
#include "base/signal_names.h"

#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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

std::string NameOf(AgentEventKind kind) {
  switch (kind) {
    case AgentEventKind::kJoining:
      return "joining";
    case AgentEventKind::kAssigned:
      return "assigned";
    case AgentEventKind::kWorkersStarted:
      return "started";
    case AgentEventKind::kUnfit:
      return "unfit";
    case AgentEventKind::kWorkerFailed:
      return "failed";
    case AgentEventKind::kToldToStop:
      return "told to stop";
    case AgentEventKind::kStopping:
      return "stopping";
    case AgentEventKind::kWorkersGone:
      return "gone";
    case AgentEventKind::kSignal:
      return "signal";
    case AgentEventKind::kDrained:
      return "drained";
    case AgentEventKind::kFenced:
      return "fenced";
    case AgentEventKind::kEvicted:
      return "evicted";
    case AgentEventKind::kLost:
      return "lost";
    case AgentEventKind::kStraggler:
      return "straggler";
    case AgentEventKind::kStragglerOver:
      return "straggler over";
    case AgentEventKind::kVerdict:
      return "verdict";
    default:
      return "another event";
  }
}

struct Text {
  std::string operator()(const CheckHealth&) const { return "check health"; }
  std::string operator()(const DropHealthCheck&) const { return "drop the health check"; }
  std::string operator()(const AskForPlace& ask) const {
    return absl::StrCat("join",
                        ask.after.number < 0 ? "" : absl::StrCat(" after ", ask.after.number),
                        ask.unfit.empty() ? "" : absl::StrCat(" unfit: ", ask.unfit));
  }
  std::string operator()(const GuardWorkers& guard) const {
    if (!guard.deadline) return "guard for ever";
    const auto at = std::chrono::duration_cast<seconds>(guard.deadline->time_since_epoch());
    return absl::StrCat("guard until ", at.count());
  }
  std::string operator()(const StartWorkers& start) const {
    return absl::StrCat("start round ", start.assignment.round);
  }
  std::string operator()(const StopWorkers& stop) const {
    return absl::StrCat("stop with ", base::SignalName(stop.signal));
  }
  std::string operator()(const KillWorkers&) const { return "kill"; }
  std::string operator()(const ReportStarted&) const { return "report started"; }
  std::string operator()(const ReportExited& report) const {
    return report.outcome.succeeded ? "report success" : "report failure";
  }
  std::string operator()(const SayLeaving&) const { return "leaving"; }
  std::string operator()(const AskToLeave& ask) const {
    return absl::StrCat("ask to leave round ", ask.round.number, " (", ask.reason, ")");
  }
  std::string operator()(const SayGoodbye&) const { return "goodbye"; }
  std::string operator()(const Finish&) const { return "finish"; }
  std::string operator()(const Tell& tell) const {
    return tell.level == Tell::kWarning ? absl::StrCat("\"", tell.sentence, "\"") : "";
  }
  std::string operator()(const RunState& state) const {
    switch (state) {
      case RunState::kWaiting:
        return "wait";
      case RunState::kRunning:
        return "run";
      case RunState::kRestarting:
        return "restart";
      case RunState::kStopping:
        return "end";
    }
    return "";
  }
  std::string operator()(const AgentEvent& event) const {
    return absl::StrCat("[", NameOf(event.kind), event.cause.empty() ? "" : ": ", event.cause, "]");
  }
};

std::string Of(const CoreActions& actions) {
  std::vector<std::string> texts;
  for (const CoreAction& action : actions) {
    std::string text = std::visit(Text{}, action);
    if (!text.empty()) texts.push_back(std::move(text));
  }
  return absl::StrJoin(texts, "; ");
}

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
AgentCore Elastic(bool serves_rendezvous, int version = kOlder) {
  AgentCore core(Fitness::HealthCheck::kNone, seconds(30),
                 {.min_nodes = 2, .max_nodes = 3, .serves_rendezvous = serves_rendezvous});
  (void)core.Begin();
  (void)core.OnDirective(rendezvous::Welcome{.version = version}, At(seconds(0)));
  return core;
}

const char kDrains[] = "Slurm drains it (bad fan)";
const Verdict kSuccess{.kind = VerdictKind::kSucceeded, .sentence = "the job has succeeded"};
const absl::Status kGone = absl::UnavailableError("the rendezvous is gone");
const absl::Status kNoGpu = absl::FailedPreconditionError("no GPU");

class AgentCoreTest : public ::testing::Test {
 protected:
  // The way to where most transcripts begin.
  void Run() {
    ASSERT_EQ(Of(core_.Begin()), "wait; [joining]; join");
    ASSERT_EQ(Of(core_.OnDirective(Place(0), At(seconds(0)))),
              "[assigned: is the first]; start round 0");
    ASSERT_EQ(Of(core_.OnWorkersStarted()), "[started]; report started");
  }

  AgentCore core_{Fitness::HealthCheck::kNone, seconds(30)};
  AgentCore checked_{Fitness::HealthCheck::kBeforeEachJoin, seconds(30)};
};

TEST_F(AgentCoreTest, JobSucceedsInItsFirstRound) {
  Run();
  EXPECT_EQ(core_.round(), 0);
  EXPECT_EQ(Of(core_.OnWorkersGone({.end = GroupEnd::kSucceeded})),
            "[gone: succeeded]; report success");
  EXPECT_EQ(Of(core_.OnDirective(kSuccess, At(seconds(1)))),
            "[verdict: the job has succeeded]; goodbye");
  EXPECT_EQ(Of(core_.OnGoodbyeHeard()), "finish");
  ASSERT_TRUE(core_.result().has_value());
}

TEST_F(AgentCoreTest, FailedWorkerIsToldToTheUserAndToTheRendezvous) {
  Run();
  EXPECT_EQ(Of(core_.OnFirstFailure({.rank = 3, .pid = 17, .what = "exited with code 3"})),
            "\"rank 3 exited with code 3\"; [failed: exited with code 3]; report failure");
  EXPECT_EQ(Of(core_.OnWorkersGone({.end = GroupEnd::kFailed})), "[gone: failed]");
  EXPECT_EQ(
      Of(core_.OnDirective(Stop{0, "a restart", 7}, At(seconds(1)))),
      "[told to stop: a restart]; \"round 0 is over: a restart\"; wait; [joining]; join after "
      "0");
}

TEST_F(AgentCoreTest, WhoeverWatchesHearsWhetherTheWorkersStopForARestartOrForGood) {
  Run();
  EXPECT_EQ(Of(core_.OnDirective(Stop{0, "a restart", 7}, At(seconds(1)))),
            "[told to stop: a restart]; \"round 0 is over: a restart\"; restart; [stopping: "
            "SIGTERM]; stop with SIGTERM");
}

TEST_F(AgentCoreTest, SignalEndsTheRun) {
  Run();
  EXPECT_EQ(Of(core_.OnSignal(SIGINT)),
            "\"received SIGINT; the workers have 30 s to stop, and a second signal kills them at "
            "once\"; [signal: SIGINT]; leaving; end; [stopping: SIGINT]; stop with SIGINT");
  EXPECT_EQ(Of(core_.OnWorkersGone({.end = GroupEnd::kStopped})), "[gone: stopped]; goodbye");
}

// Two nodes that were drained together left a job that could spare one of them.
TEST_F(AgentCoreTest, DrainedNodeAsksWhetherTheJobCanSpareIt) {
  AgentCore core = Elastic(/*serves_rendezvous=*/false, rendezvous::kLeaveAnswers);
  (void)core.OnDirective(PlaceAmong(0, 2), At(seconds(0)));
  const std::string asks = "ask to leave round 0 (Slurm drains it (bad fan))";
  EXPECT_EQ(Of(core.OnDrained(kDrains)), asks) << "a spare may wait";
  const LeaveAnswer stay{.why_not = "the job needs 2 nodes, and has 2"};
  EXPECT_EQ(Of(core.OnDirective(stay, At(seconds(1)))),
            "\"this node stays in the job, although Slurm drains it (bad fan): the job needs 2 "
            "nodes, and has 2\"");
  EXPECT_EQ(Of(core.OnDrained(kDrains)), asks);
  EXPECT_EQ(Of(core.OnDirective(stay, At(seconds(2)))), "") << "it was said";
  EXPECT_EQ(Of(core.OnDrained(kDrains)), asks);
  EXPECT_EQ(Of(core.OnDirective(LeaveAnswer{.may_leave = true}, At(seconds(3)))),
            "\"this node leaves the job, as Slurm drains it (bad fan); the workers have 30 s to "
            "stop\"; [drained: Slurm drains it (bad fan)]; leaving; end; [stopping: SIGTERM]; stop "
            "with SIGTERM");
  EXPECT_EQ(Of(core.OnDirective(LeaveAnswer{.may_leave = true}, At(seconds(4)))), "");
  EXPECT_EQ(Of(core.OnDrained(kDrains)), "");
  EXPECT_EQ(Of(core.OnWorkersGone({.end = GroupEnd::kStopped})), "[gone: stopped]; goodbye");
}

// A spare node that was drained was given the place of a node that left, and the job stopped again
// when it asked in its turn.
TEST_F(AgentCoreTest, DrainedSpareNodeLeavesBeforeItHasAPlace) {
  AgentCore core = Elastic(/*serves_rendezvous=*/false, rendezvous::kLeaveAnswers);
  const std::string asks = "ask to leave round -1 (Slurm drains it (bad fan))";
  EXPECT_EQ(Of(core.OnDrained(kDrains)), asks);
  const LeaveAnswer stay{.why_not = "the job needs 2 nodes, and has 2"};
  EXPECT_EQ(Of(core.OnDirective(stay, At(seconds(1)))),
            "\"this node stays in the job, although Slurm drains it (bad fan): the job needs 2 "
            "nodes, and has 2\"");
  EXPECT_EQ(Of(core.OnDrained(kDrains)), asks);
  EXPECT_EQ(Of(core.OnDirective(LeaveAnswer{.may_leave = true}, At(seconds(2)))),
            "\"this node leaves the job, as Slurm drains it (bad fan)\"; [drained: Slurm drains it "
            "(bad fan)]; goodbye");
  EXPECT_EQ(Of(core.OnDrained(kDrains)), "");
  EXPECT_EQ(Of(core.OnGoodbyeHeard()), "finish");
}

TEST_F(AgentCoreTest, DrainedNodeThatServesTheRendezvousAsksNobody) {
  AgentCore core = Elastic(/*serves_rendezvous=*/true, rendezvous::kLeaveAnswers);
  EXPECT_EQ(Of(core.OnDrained(kDrains)), "") << "there is no round yet";
  (void)core.OnDirective(PlaceAmong(0, 3), At(seconds(0)));
  EXPECT_EQ(Of(core.OnDrained(kDrains)),
            "\"this node stays in the job, although Slurm drains it (bad fan): the rendezvous is "
            "served here\"");
}

TEST_F(AgentCoreTest, AnswerThatComesWhenTheWorkersAreStoppingChangesOnlyWhatFollows) {
  AgentCore core = Elastic(/*serves_rendezvous=*/false, rendezvous::kLeaveAnswers);
  (void)core.OnDirective(PlaceAmong(0, 3), At(seconds(0)));
  (void)core.OnDrained(kDrains);
  (void)core.OnDirective(Stop{0, "a node has come", 7}, At(seconds(1)));
  EXPECT_EQ(Of(core.OnDirective(LeaveAnswer{.why_not = "it is needed"}, At(seconds(2)))),
            "\"this node stays in the job, although Slurm drains it (bad fan): it is needed\"");
  EXPECT_EQ(Of(core.OnDirective(LeaveAnswer{.may_leave = true}, At(seconds(2)))),
            "\"this node leaves the job, as Slurm drains it (bad fan)\"; [drained: Slurm drains it "
            "(bad fan)]; leaving");
  EXPECT_EQ(Of(core.OnWorkersGone({.end = GroupEnd::kStopped})), "[gone: stopped]; goodbye");
}

// A job of MIN:MAX nodes went on with a node that was to be repaired, until the whole job ended.
// Beside a rendezvous that does not answer each node decides for itself.
TEST_F(AgentCoreTest, DrainedNodeLeavesAJobThatCanSpareIt) {
  AgentCore core = Elastic(/*serves_rendezvous=*/false);
  EXPECT_EQ(Of(core.OnDrained(kDrains)), "") << "there is no round yet";
  (void)core.OnDirective(PlaceAmong(0, 3), At(seconds(0)));
  EXPECT_EQ(Of(core.OnDrained(kDrains)),
            "\"this node leaves the job, as Slurm drains it (bad fan); the workers have 30 s to "
            "stop\"; [drained: Slurm drains it (bad fan)]; leaving; end; [stopping: SIGTERM]; stop "
            "with SIGTERM");
  EXPECT_EQ(Of(core.OnDrained(kDrains)), "");
  EXPECT_EQ(Of(core.OnWorkersGone({.end = GroupEnd::kStopped})), "[gone: stopped]; goodbye");
  EXPECT_EQ(Of(core.OnGoodbyeHeard()), "finish");
}

TEST_F(AgentCoreTest, DrainedNodeThatTheJobNeedsSaysSoOnce) {
  const auto said = [](AgentCore core, int nodes) {
    (void)core.OnDirective(PlaceAmong(0, nodes), At(seconds(0)));
    const std::string first = Of(core.OnDrained(kDrains));
    EXPECT_EQ(Of(core.OnDrained(kDrains)), "");
    return first;
  };
  AgentCore fixed(Fitness::HealthCheck::kNone, seconds(30), {.min_nodes = 3, .max_nodes = 3});
  (void)fixed.OnDirective(rendezvous::Welcome{.version = kOlder}, At(seconds(0)));
  EXPECT_EQ(
      said(fixed, 3),
      "\"this node stays in the job, although Slurm drains it (bad fan): the job needs all of "
      "its 3 nodes; with --nnodes=MIN:MAX it could go on without\"");
  EXPECT_EQ(said(Elastic(/*serves_rendezvous=*/true), 3),
            "\"this node stays in the job, although Slurm drains it (bad fan): the rendezvous is "
            "served here\"");
  EXPECT_EQ(said(Elastic(/*serves_rendezvous=*/false), 2),
            "\"this node stays in the job, although Slurm drains it (bad fan): the job needs 2 "
            "nodes, and has 2\"");
}

TEST_F(AgentCoreTest, DrainedNodeLeavesOnceThereAreEnoughOthers) {
  AgentCore core = Elastic(/*serves_rendezvous=*/false);
  (void)core.OnDirective(PlaceAmong(0, 2), At(seconds(0)));
  (void)core.OnDrained(kDrains);
  (void)core.OnDirective(Stop{0, "a node has come", 7}, At(seconds(1)));
  EXPECT_EQ(Of(core.OnDrained(kDrains)), "") << "the workers are being stopped";
  (void)core.OnWorkersGone({.end = GroupEnd::kStopped});
  (void)core.OnDirective(PlaceAmong(1, 3), At(seconds(2)));
  EXPECT_EQ(Of(core.OnDrained(kDrains)).substr(0, 26), "\"this node leaves the job,");
}

// "I pressed Ctrl-C, nothing happened, and nobody told me what to do or what had been in the way."
TEST_F(AgentCoreTest, WorkersThatNeedSigkillAreNamed) {
  Run();
  EXPECT_EQ(Of(core_.OnSignal(SIGTERM)).substr(0, 26), "\"received SIGTERM; the wor");
  EXPECT_EQ(Of(core_.OnSignal(SIGTERM)),
            "\"received SIGTERM; killing the workers\"; [signal: SIGTERM]; kill");
  const auto exit = [](int rank, int signal, bool stopped) {
    return worker::WorkerExit{.rank = rank,
                              .pid = 17,
                              .status = worker::ExitStatus{.signal = signal},
                              .stopped_by_group = stopped};
  };
  EXPECT_EQ(Of(core_.OnWorkersGone({.end = GroupEnd::kStopped,
                                    .exits = {exit(0, SIGKILL, true), exit(1, SIGTERM, true),
                                              exit(2, SIGKILL, true), exit(3, SIGKILL, false)}})),
            "[gone: stopped]; \"ranks 0, 2 did not stop when told to and needed SIGKILL\"; "
            "goodbye");
}

TEST_F(AgentCoreTest, WorkersThatWereNotToldToStopAreNotBlamedForBeingKilled) {
  Run();
  EXPECT_EQ(Of(core_.OnFenced("nothing was heard")).substr(0, 7), "[fenced");
  EXPECT_EQ(Of(core_.OnWorkersGone({.end = GroupEnd::kStopped,
                                    .exits = {{.rank = 0,
                                               .pid = 17,
                                               .status = worker::ExitStatus{.signal = SIGKILL},
                                               .stopped_by_group = true}}})),
            "[gone: stopped]; wait; [joining]; join after 0");
}

// "It said that a second signal kills them at once, and a second `kill` did nothing."
TEST_F(AgentCoreTest, SigtermInSlurmSaysWhatKillsTheWorkers) {
  const auto said = [](int signal) {
    AgentCore core(Fitness::HealthCheck::kNone, seconds(30), {}, /*sigterm_counts_once=*/true);
    (void)core.Begin();
    (void)core.OnDirective(Place(0), At(seconds(0)));
    return std::get<Tell>(core.OnSignal(signal).front()).sentence;
  };
  EXPECT_EQ(said(SIGTERM),
            "received SIGTERM; the workers have 30 s to stop, and SIGINT kills them at once; "
            "SIGTERM does not, as Slurm repeats it");
  EXPECT_EQ(said(SIGINT),
            "received SIGINT; the workers have 30 s to stop, and a second signal kills them at "
            "once");
}

TEST_F(AgentCoreTest, SignalSaysHowLongTheWorkersHave) {
  const auto said = [](AgentCore core) {
    (void)core.Begin();
    (void)core.OnDirective(Place(0), At(seconds(0)));
    const CoreActions actions = core.OnSignal(SIGTERM);
    return std::get<Tell>(actions.front()).sentence;
  };
  EXPECT_EQ(said(AgentCore(Fitness::HealthCheck::kNone, seconds(0))),
            "received SIGTERM; killing the workers");
  EXPECT_EQ(said(AgentCore(Fitness::HealthCheck::kNone, std::chrono::milliseconds::max())),
            "received SIGTERM; the workers may take as long as they need to stop, and a second "
            "signal kills "
            "them at once");
  Run();
  (void)core_.OnFirstFailure({.rank = 3, .what = "exited with code 3"});
  EXPECT_EQ(std::get<Tell>(core_.OnSignal(SIGTERM).front()).sentence,
            "received SIGTERM; the workers are already being stopped, and a second signal kills "
            "them at once");
}

TEST_F(AgentCoreTest, DeadlineIsTheGuardsAndIsKeptForTheNextRound) {
  Run();
  EXPECT_EQ(Of(core_.OnDeadline(At(seconds(3)))), "guard until 3");
  EXPECT_EQ(core_.deadline(), At(seconds(3)));
}

TEST_F(AgentCoreTest, LostRendezvousLeavesTheWorkersTheirWholeGrace) {
  Run();
  EXPECT_EQ(Of(core_.OnDeadline(At(seconds(3)))), "guard until 3");
  // The client takes the deadline back before it gives up: nobody gives this node's ranks away.
  EXPECT_EQ(Of(core_.OnDeadline(std::nullopt)), "guard for ever");
  EXPECT_EQ(Of(core_.OnLost(kGone)),
            "[lost: the rendezvous is gone]; end; [stopping: SIGTERM]; stop with SIGTERM");
  EXPECT_EQ(core_.deadline(), std::nullopt);
  EXPECT_EQ(Of(core_.OnWorkersGone({.end = GroupEnd::kStopped})), "[gone: stopped]; finish");
}

// Two ranks ran twice for a moment: an Assignment that was held up started workers, which only then
// were found to be too late and killed.
TEST_F(AgentCoreTest, AssignmentThatComesAfterTheDeadlineStartsNobody) {
  EXPECT_EQ(Of(core_.Begin()), "wait; [joining]; join");
  EXPECT_EQ(Of(core_.OnDeadline(At(seconds(3)))), "guard until 3");
  EXPECT_EQ(Of(core_.OnDirective(Place(0), At(seconds(3)))),
            "[fenced: the workers may not run any longer without a rendezvous]; \"the workers may "
            "not run any longer without a rendezvous; rejoining\"; wait; [joining]; join after 0");
  EXPECT_EQ(core_.round(), 0);
  EXPECT_EQ(Of(core_.OnDirective(Place(0), At(seconds(3)))), "") << "told again";
  EXPECT_EQ(Of(core_.OnDeadline(At(seconds(9)))), "guard until 9");
  EXPECT_EQ(Of(core_.OnDirective(Place(1), At(seconds(4)))),
            "[assigned: is the first]; start round 1");
}

TEST_F(AgentCoreTest, WorkersThatTheGuardKilledAreNoFailure) {
  Run();
  EXPECT_EQ(Of(core_.OnLostTouch()),
            "[fenced: the workers may not run any longer without a rendezvous]; \"the workers may "
            "not run any longer without a rendezvous; killing its workers and rejoining\"; kill");
  EXPECT_EQ(Of(core_.OnWorkersGone({.end = GroupEnd::kFailed})),
            "[gone: failed]; wait; [joining]; join after 0");
}

TEST_F(AgentCoreTest, NodeThatIsFencedWithoutWorkersTellsNobody) {
  EXPECT_EQ(Of(core_.Begin()), "wait; [joining]; join");
  EXPECT_EQ(Of(core_.OnFenced("nothing was heard")), "");
}

TEST_F(AgentCoreTest, HealthIsCheckedBeforeEachJoin) {
  EXPECT_EQ(Of(checked_.Begin()), "wait; [joining]; check health");
  EXPECT_EQ(Of(checked_.OnHealth(absl::OkStatus())), "join");
  EXPECT_EQ(Of(checked_.OnDirective(Place(0), At(seconds(0)))),
            "[assigned: is the first]; start round 0");
  EXPECT_EQ(Of(checked_.OnLostTouch()).substr(0, 7), "[fenced");
  EXPECT_EQ(Of(checked_.OnWorkersGone({.end = GroupEnd::kFailed})),
            "[gone: failed]; wait; [joining]; check health");
  EXPECT_EQ(Of(checked_.OnHealth(kNoGpu)), "[unfit: no GPU]; join after 0 unfit: no GPU");
}

TEST_F(AgentCoreTest, NodeThatWasUnfitMayBeFitTheNextTime) {
  EXPECT_EQ(Of(checked_.Begin()), "wait; [joining]; check health");
  EXPECT_EQ(Of(checked_.OnHealth(kNoGpu)), "[unfit: no GPU]; join unfit: no GPU");
  EXPECT_EQ(Of(checked_.OnDirective(Evicted{"it was silent"}, At(seconds(0)))),
            "[evicted: it was silent]; \"it was silent; rejoining\"; wait; [joining]; check "
            "health");
  EXPECT_EQ(Of(checked_.OnHealth(absl::OkStatus())), "join");
}

TEST_F(AgentCoreTest, HealthCheckBeginsAnewWhenTheRoundItWasForIsOver) {
  EXPECT_EQ(Of(checked_.Begin()), "wait; [joining]; check health");
  EXPECT_EQ(Of(checked_.OnDirective(Stop{0, "a restart", 7}, At(seconds(0)))),
            "[told to stop: a restart]; wait; [joining]; check health");
  EXPECT_EQ(Of(checked_.OnHealth(absl::OkStatus())), "join after 0");
  EXPECT_EQ(Of(checked_.OnHealth(absl::OkStatus())), "") << "that of the first check";
}

TEST_F(AgentCoreTest, SignalDuringAHealthCheckLeavesAtOnce) {
  EXPECT_EQ(Of(checked_.Begin()), "wait; [joining]; check health");
  EXPECT_EQ(Of(checked_.OnSignal(SIGTERM)),
            "\"received SIGTERM\"; [signal: SIGTERM]; drop the health check; goodbye");
  EXPECT_EQ(Of(checked_.OnHealth(absl::OkStatus())), "") << "it had ended just before";
}

TEST_F(AgentCoreTest, LostRendezvousEndsAHealthCheck) {
  EXPECT_EQ(Of(checked_.Begin()), "wait; [joining]; check health");
  EXPECT_EQ(Of(checked_.OnLost(kGone)),
            "[lost: the rendezvous is gone]; drop the health check; finish");
}

TEST_F(AgentCoreTest, NodeWithAWorkerThatCannotBeKilledIsNeverFitAgain) {
  EXPECT_EQ(Of(checked_.Begin()), "wait; [joining]; check health");
  EXPECT_EQ(Of(checked_.OnHealth(absl::OkStatus())), "join");
  EXPECT_EQ(Of(checked_.OnDirective(Place(0), At(seconds(0)))),
            "[assigned: is the first]; start round 0");
  EXPECT_EQ(Of(checked_.OnLostTouch()).substr(0, 7), "[fenced");
  const GroupResult stuck{
      .end = GroupEnd::kFailed,
      .exits = {{.rank = 2, .pid = 17, .status = worker::ExitStatus{.signal = SIGKILL}},
                {.rank = 3, .pid = 18, .stuck = "is in state D"}}};
  EXPECT_EQ(
      Of(checked_.OnWorkersGone(stuck)),
      "[gone: failed]; wait; [joining]; join after 0 unfit: rank 3 (pid 18) cannot be killed: "
      "it is in state D")
      << "there is nothing to check";
  EXPECT_EQ(Of(checked_.OnDirective(Evicted{"it was silent"}, At(seconds(9)))),
            "[evicted: it was silent]; \"it was silent; rejoining\"; wait; [joining]; join "
            "after 0 unfit: rank 3 (pid 18) cannot be killed: it is in state D");
}

// A straggler was said on the terminal, and was in no event log.
TEST_F(AgentCoreTest, StragglersAreEvents) {
  using rendezvous::Notice;
  core_.Begin();
  core_.OnDirective(Place(4), At(seconds(0)));
  const CoreActions found =
      core_.OnDirective(Notice{"rank 3 is slow", Notice::Kind::kStraggler, 3}, At(seconds(1)));
  EXPECT_EQ(Of(found), "[straggler: rank 3 is slow]; \"rank 3 is slow\"");
  const AgentEvent event = std::get<AgentEvent>(found.at(0));
  EXPECT_EQ(event.round, 4);
  EXPECT_EQ(event.rank, 3);
  EXPECT_EQ(
      Of(core_.OnDirective(Notice{"it is not", Notice::Kind::kStragglerOver}, At(seconds(2)))),
      "[straggler over: it is not]; \"it is not\"");
  EXPECT_EQ(Of(core_.OnDirective(Notice{"another thing"}, At(seconds(3)))), "\"another thing\"");
}

TEST_F(AgentCoreTest, NodeThatCannotStartItsWorkersLeaves) {
  EXPECT_EQ(Of(core_.Begin()), "wait; [joining]; join");
  EXPECT_EQ(Of(core_.OnDirective(Place(0), At(seconds(0)))),
            "[assigned: is the first]; start round 0");
  EXPECT_EQ(Of(core_.OnCannotStart(absl::UnavailableError("no space"))), "goodbye");
}

}  // namespace
}  // namespace muster::launcher
