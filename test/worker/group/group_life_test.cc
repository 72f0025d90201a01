// The life of a worker group as transcripts: events and their times go in; the resulting actions
// come out, on one line, in order.
#include "worker/group/group_life.h"
#include "base/signal_names.h"

#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Text {
  std::string operator()(const TellStarted&) const { return "started"; }
  std::string operator()(const TellFirstFailure& failure) const {
    return failure.worker ? absl::StrCat("first failure: worker ", *failure.worker)
                          : "first failure: a start";
  }
  std::string operator()(const KeepFailure& failure) const {
    return absl::StrCat("another failure: worker ", failure.worker);
  }
  std::string operator()(const Halt&) const { return "halt"; }
  std::string operator()(const SignalTree& signal) const { return base::SignalName(signal.signal); }
  std::string operator()(const NameLeftovers&) const { return "name leftovers"; }
  std::string operator()(const KillTree&) const { return "kill"; }
  std::string operator()(const KillStragglers&) const { return "kill stragglers"; }
  std::string operator()(const LookForLeftovers&) const { return "look"; }
  std::string operator()(const RemindOfSignal& reminder) const {
    return absl::StrCat("remind of ", base::SignalName(reminder.first_signal));
  }
  std::string operator()(const LeaveBehind& given_up) const {
    return absl::StrCat("leave behind after ", given_up.after.count(), " ms");
  }
  std::string operator()(const FinishGroup&) const { return "finish"; }
};

std::string Of(const GroupActions& actions) {
  return absl::StrJoin(actions, "; ", [](std::string* out, const GroupAction& action) {
    out->append(std::visit(Text{}, action));
  });
}

constexpr GroupLife::TimePoint At(milliseconds since_start) {
  return GroupLife::TimePoint(since_start);
}

class GroupLifeTest : public ::testing::Test {
 protected:
  // The way to where most transcripts begin.
  void Run(int workers) {
    life_.Begin();
    for (int i = 0; i < workers; ++i) life_.WorkerStarted();
    ASSERT_EQ(Of(life_.StartsOver()), "started");
  }
  // Nothing is due before `next`, and nothing is done before.
  void ExpectNext(milliseconds next) {
    ASSERT_EQ(life_.NextDeadline(), At(next));
    EXPECT_EQ(Of(life_.Tick(At(next) - std::chrono::nanoseconds(1))), "");
  }

  GroupLife life_{{.first_signal = SIGTERM, .grace = seconds(30), .give_up = seconds(5)}};
};

TEST_F(GroupLifeTest, WorkersSucceedOneAfterTheOther) {
  Run(2);
  EXPECT_EQ(Of(life_.WorkerExited(1, WorkerEnd::kSucceeded)), "");
  EXPECT_EQ(life_.running(), 1);
  EXPECT_EQ(Of(life_.WorkerExited(0, WorkerEnd::kSucceeded)), "look");
  EXPECT_EQ(Of(life_.LeftoversSeen(false, At(seconds(1)))), "finish");
  EXPECT_EQ(life_.end(), GroupEnd::kSucceeded);
  EXPECT_EQ(life_.NextDeadline(), std::nullopt);
  EXPECT_EQ(Of(life_.OrphanEnded()), "") << "it is over";
  EXPECT_EQ(Of(life_.Stop(StopLadder::Now(), At(seconds(2)))), "");
}

TEST_F(GroupLifeTest, FirstFailureIsToldBeforeTheOthersAreStopped) {
  Run(3);
  EXPECT_EQ(Of(life_.WorkerExited(1, WorkerEnd::kFailed)), "first failure: worker 1");
  EXPECT_EQ(Of(life_.FailureTold(At(seconds(10)))), "halt; SIGTERM");
  EXPECT_EQ(Of(life_.WorkerExited(0, WorkerEnd::kFailed)), "another failure: worker 0")
      << "it had failed before the signal reached it";
  EXPECT_EQ(Of(life_.WorkerExited(2, WorkerEnd::kStopped)), "look");
  EXPECT_EQ(Of(life_.LeftoversSeen(false, At(seconds(11)))), "finish");
  EXPECT_EQ(life_.end(), GroupEnd::kFailed);
}

TEST_F(GroupLifeTest, WhoIsKilledHasFailedBeforeItHasEnded) {
  Run(3);
  EXPECT_EQ(Of(life_.WorkerKilled(1)), "first failure: worker 1");
  EXPECT_EQ(Of(life_.FailureTold(At(seconds(10)))), "halt; SIGTERM");
  EXPECT_EQ(Of(life_.WorkerKilled(2)), "") << "it was stopping";
  EXPECT_EQ(Of(life_.WorkerExited(0, WorkerEnd::kFailed)), "another failure: worker 0");
  EXPECT_EQ(Of(life_.WorkerExited(2, WorkerEnd::kStopped)), "");
  EXPECT_EQ(Of(life_.WorkerExited(1, WorkerEnd::kStopped)), "look");
  EXPECT_EQ(Of(life_.LeftoversSeen(false, At(seconds(11)))), "finish");
  EXPECT_EQ(life_.end(), GroupEnd::kFailed);
}

TEST_F(GroupLifeTest, WhoeverHearsOfTheFailureMayStopTheGroupItsOwnWay) {
  Run(2);
  EXPECT_EQ(Of(life_.WorkerExited(0, WorkerEnd::kFailed)), "first failure: worker 0");
  EXPECT_EQ(Of(life_.Stop({.first_signal = SIGINT, .grace = seconds(1)}, At(seconds(0)))),
            "halt; SIGINT");
  EXPECT_EQ(Of(life_.FailureTold(At(seconds(0)))), "") << "one ladder is enough";
  ExpectNext(seconds(1));
  EXPECT_EQ(Of(life_.WorkerExited(1, WorkerEnd::kStopped)), "look");
  EXPECT_EQ(Of(life_.LeftoversSeen(false, At(seconds(1)))), "finish");
  EXPECT_EQ(life_.end(), GroupEnd::kFailed) << "not stopped: it failed before";
}

TEST_F(GroupLifeTest, WorkerThatTakesTooLongToDieIsKilledAndThenLeftBehind) {
  Run(1);
  EXPECT_EQ(Of(life_.Stop({.first_signal = SIGINT, .grace = seconds(3), .give_up = seconds(2)},
                          At(seconds(10)))),
            "halt; SIGINT");
  ExpectNext(seconds(13));
  EXPECT_EQ(Of(life_.Tick(At(seconds(13)))), "name leftovers; kill");
  ExpectNext(seconds(15));
  EXPECT_EQ(Of(life_.Tick(At(seconds(15)))), "leave behind after 2000 ms; finish");
  EXPECT_EQ(life_.end(), GroupEnd::kStopped);
}

TEST_F(GroupLifeTest, WorkerThatDiesOfSigkillIsWaitedFor) {
  Run(1);
  EXPECT_EQ(Of(life_.Stop(StopLadder::Now(), At(seconds(10)))), "halt; kill");
  ExpectNext(seconds(15));
  EXPECT_EQ(Of(life_.WorkerExited(0, WorkerEnd::kStopped)), "look");
  EXPECT_EQ(Of(life_.LeftoversSeen(true, At(seconds(11)))), "kill stragglers");
  ExpectNext(seconds(15));
  EXPECT_EQ(Of(life_.OrphanEnded()), "look");
  EXPECT_EQ(Of(life_.LeftoversSeen(false, At(seconds(12)))), "finish");
}

TEST_F(GroupLifeTest, SecondStopOnlyHastensTheKill) {
  Run(1);
  EXPECT_EQ(Of(life_.Stop({.first_signal = SIGINT, .grace = seconds(30)}, At(seconds(0)))),
            "halt; SIGINT");
  EXPECT_EQ(Of(life_.Stop({.first_signal = SIGTERM, .grace = seconds(60)}, At(seconds(1)))), "");
  ExpectNext(seconds(30));
  EXPECT_EQ(Of(life_.Stop({.first_signal = SIGTERM, .grace = seconds(5)}, At(seconds(2)))), "");
  ExpectNext(seconds(7));
  EXPECT_EQ(Of(life_.Stop(StopLadder::Now(), At(seconds(3)))), "kill");
  ExpectNext(seconds(8));
  EXPECT_EQ(Of(life_.Stop(StopLadder::Now(), At(seconds(4)))), "");
  ExpectNext(seconds(8));
}

TEST_F(GroupLifeTest, GraceWithoutAnEndIsEndedBySomebodyWhoAsksForIt) {
  Run(1);
  EXPECT_EQ(Of(life_.Stop({.first_signal = SIGINT, .grace = StopLadder::kForever}, At(seconds(0)))),
            "halt; SIGINT");
  EXPECT_EQ(life_.NextDeadline(), std::nullopt);
  EXPECT_EQ(Of(life_.Stop(StopLadder::Now(), At(seconds(86400)))), "kill");
}

TEST_F(GroupLifeTest, WhatWorkersLeaveBehindIsStoppedAndRemindedLessAndLessOften) {
  Run(1);
  EXPECT_EQ(Of(life_.WorkerExited(0, WorkerEnd::kSucceeded)), "look");
  EXPECT_EQ(Of(life_.LeftoversSeen(true, At(seconds(10)))), "halt; SIGTERM");
  ExpectNext(milliseconds(10'200));
  EXPECT_EQ(Of(life_.Tick(At(milliseconds(10'200)))), "remind of SIGTERM");
  EXPECT_EQ(Of(life_.LeftoversReminded(true, At(milliseconds(10'200)))), "");
  ExpectNext(milliseconds(10'600));
  EXPECT_EQ(Of(life_.OrphanEnded()), "look");
  EXPECT_EQ(Of(life_.LeftoversSeen(true, At(milliseconds(10'300)))), "") << "some are left";
  EXPECT_EQ(Of(life_.Tick(At(milliseconds(10'600)))), "remind of SIGTERM");
  EXPECT_EQ(Of(life_.LeftoversReminded(false, At(milliseconds(10'600)))), "");
  ExpectNext(seconds(40));
  EXPECT_EQ(Of(life_.Tick(At(seconds(40)))), "name leftovers; kill");
  EXPECT_EQ(Of(life_.OrphanEnded()), "look");
  EXPECT_EQ(Of(life_.LeftoversSeen(false, At(seconds(41)))), "finish");
  EXPECT_EQ(life_.end(), GroupEnd::kSucceeded) << "what a worker leaves behind is no failure";
}

TEST_F(GroupLifeTest, LeftoversOfAStoppedGroupAreRemindedOfItsOwnSignal) {
  Run(1);
  EXPECT_EQ(Of(life_.Stop({.first_signal = SIGINT, .grace = StopLadder::kForever}, At(seconds(0)))),
            "halt; SIGINT");
  EXPECT_EQ(Of(life_.WorkerExited(0, WorkerEnd::kStopped)), "look");
  EXPECT_EQ(Of(life_.LeftoversSeen(true, At(seconds(1)))), "");
  EXPECT_EQ(Of(life_.Tick(At(milliseconds(1'200)))), "remind of SIGINT");
}

TEST_F(GroupLifeTest, NobodyIsRemindedOnceAllAreKilled) {
  Run(1);
  EXPECT_EQ(Of(life_.WorkerExited(0, WorkerEnd::kSucceeded)), "look");
  EXPECT_EQ(Of(life_.LeftoversSeen(true, At(seconds(0)))), "halt; SIGTERM");
  EXPECT_EQ(Of(life_.Stop(StopLadder::Now(), At(milliseconds(100)))), "kill");
  EXPECT_EQ(Of(life_.Tick(At(milliseconds(200)))), "");
  ExpectNext(milliseconds(5'100));
}

TEST_F(GroupLifeTest, LoopThatStoodStillForMinutesKillsAtOnceAndStillWaitsForTheEnd) {
  Run(1);
  EXPECT_EQ(Of(life_.Stop({.grace = seconds(1), .give_up = seconds(5)}, At(seconds(0)))),
            "halt; SIGTERM");
  EXPECT_EQ(Of(life_.Tick(At(seconds(300)))), "name leftovers; kill");
  ExpectNext(seconds(305));
}

TEST_F(GroupLifeTest, WorkerThatCannotBeStartedEndsThoseThatWere) {
  life_.Begin();
  life_.WorkerStarted();
  EXPECT_EQ(Of(life_.StartFailed()), "first failure: a start");
  EXPECT_EQ(Of(life_.FailureTold(At(seconds(0)))), "halt; SIGTERM");
  EXPECT_EQ(Of(life_.WorkerExited(0, WorkerEnd::kStopped)), "look");
  EXPECT_EQ(Of(life_.LeftoversSeen(false, At(seconds(1)))), "finish");
  EXPECT_EQ(life_.end(), GroupEnd::kFailed);
}

TEST_F(GroupLifeTest, OnlyWorkerThatCannotBeStartedEndsTheGroup) {
  life_.Begin();
  EXPECT_EQ(Of(life_.StartFailed()), "first failure: a start");
  EXPECT_EQ(Of(life_.FailureTold(At(seconds(0)))), "halt; SIGTERM; look");
  EXPECT_EQ(Of(life_.LeftoversSeen(false, At(seconds(0)))), "finish");
}

TEST_F(GroupLifeTest, GroupThatIsStoppedWhileItStillStartsWaitsForTheStartsToBeOver) {
  life_.Begin();
  life_.WorkerStarted();
  EXPECT_EQ(Of(life_.Stop({.grace = seconds(1)}, At(seconds(0)))), "halt; SIGTERM");
  EXPECT_EQ(Of(life_.WorkerExited(0, WorkerEnd::kStopped)), "")
      << "others may be on their way still";
  EXPECT_EQ(Of(life_.StartsOver()), "look") << "nobody hears that all were started";
  EXPECT_EQ(Of(life_.LeftoversSeen(false, At(seconds(1)))), "finish");
  EXPECT_EQ(life_.end(), GroupEnd::kStopped);
}

TEST_F(GroupLifeTest, StartThatFailedBeforeTheGroupWasStoppedIsAFailure) {
  life_.Begin();
  EXPECT_EQ(Of(life_.Stop({.grace = seconds(1)}, At(seconds(0)))), "halt; SIGTERM");
  EXPECT_EQ(Of(life_.StartFailed()), "first failure: a start");
  EXPECT_EQ(Of(life_.FailureTold(At(seconds(0)))), "look") << "the ladder runs already";
  EXPECT_EQ(Of(life_.LeftoversSeen(false, At(seconds(0)))), "finish");
  EXPECT_EQ(life_.end(), GroupEnd::kFailed);
}

TEST_F(GroupLifeTest, WorkerThatEndsBeforeTheNextIsStartedDoesNotEndTheGroup) {
  life_.Begin();
  life_.WorkerStarted();
  EXPECT_EQ(Of(life_.WorkerExited(0, WorkerEnd::kSucceeded)), "");
  life_.WorkerStarted();
  EXPECT_EQ(Of(life_.StartsOver()), "started");
  EXPECT_EQ(Of(life_.WorkerExited(1, WorkerEnd::kSucceeded)), "look");
}

}  // namespace
}  // namespace muster::worker
