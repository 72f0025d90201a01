// The life of a worker group as transcripts: events and their times go in; what its port is asked
// for comes out, on one line, in order.
#include "worker/group/group_life.h"

#include <csignal>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text.h"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr GroupLife::TimePoint At(milliseconds since_start) {
  return GroupLife::TimePoint(since_start);
}

// A GroupLife and its port, which writes down what it is asked for.
class LifeTranscript : private GroupPort {
 public:
  explicit LifeTranscript(const StopLadder& ladder, LeftoverPolicy policy = LeftoverPolicy::kWait)
      : life_(*this, ladder, policy) {}

  // What the port answers, and what else happens when the first failure is told.
  bool any_left = true;
  Stopped stopped;
  std::function<void(GroupLife&)> on_first_failure;

  void Begin() { life_.Begin(); }
  void WorkerStarted() { life_.WorkerStarted(); }
  std::string StartsOver() { return After(&GroupLife::StartsOver, At(seconds(10))); }
  std::string StartFailed() { return After(&GroupLife::StartFailed, At(seconds(10))); }
  std::string WorkerExited(std::size_t worker, WorkerEnd end, GroupLife::TimePoint now) {
    return After(&GroupLife::WorkerExited, worker, end, now);
  }
  std::string WorkerKilled(std::size_t worker) {
    return After(&GroupLife::WorkerKilled, worker, At(seconds(10)));
  }
  std::string OrphanEnded(GroupLife::TimePoint now) { return After(&GroupLife::OrphanEnded, now); }
  std::string Stop(const StopLadder& ladder, GroupLife::TimePoint now) {
    return After(&GroupLife::Stop, ladder, now);
  }
  std::string Tick(GroupLife::TimePoint now) { return After(&GroupLife::Tick, now); }
  std::optional<GroupLife::TimePoint> NextDeadline() const { return life_.NextDeadline(); }
  int running() const { return life_.running(); }
  GroupEnd end() const { return life_.end(); }

 private:
  template <typename... Params, typename... Values>
  std::string After(void (GroupLife::*event)(Params...), const Values&... values) {
    (life_.*event)(values...);
    return absl::StrJoin(std::exchange(lines_, {}), "; ");
  }
  template <typename... Parts>
  void Line(const Parts&... parts) {
    lines_.push_back(absl::StrCat(parts...));
  }

  void TellStarted() override { Line("started"); }
  void TellFirstFailure(std::optional<std::size_t> worker, bool alike) override {
    Line("first failure: ", worker ? absl::StrCat("worker ", *worker) : "a start",
         alike ? ", as all" : "");
    if (on_first_failure) on_first_failure(life_);
  }
  void KeepFailure(std::size_t worker, bool alike) override {
    Line("another failure: worker ", worker, alike ? ", as all" : "");
  }
  void Halt() override { Line("halt"); }
  void SignalWorkers(int signal) override { Line(base::SignalName(signal)); }
  void KillTree(bool again) override { Line(again ? "kill again" : "kill"); }
  bool AnyLeft() override {
    Line("look");
    return any_left;
  }
  Stopped StopLeftovers(StopLadder::Duration grace) override {
    const bool limited = grace != StopLadder::kForever;
    Line("stop leftovers", limited ? absl::StrCat(" in ", grace.count() / 1000, " s") : "");
    return stopped;
  }
  void NameLeftovers() override { Line("name leftovers"); }
  void SayWaiting(StopLadder::Duration limit) override {
    Line("waiting up to ", limit.count() / 1000, " s");
  }
  void KeepLeftovers() override { Line("keep leftovers"); }
  void LeaveBehind(StopLadder::Duration after) override {
    Line("leave behind after ", after.count(), " ms");
  }
  void Finish() override { Line("finish"); }

  GroupLife life_;
  std::vector<std::string> lines_;
};

class GroupLifeTest : public ::testing::Test {
 protected:
  // The start of most transcripts.
  void Run(int workers) { Run(workers, life_); }
  static void Run(int workers, LifeTranscript& life) {
    life.Begin();
    for (int i = 0; i < workers; ++i) life.WorkerStarted();
    ASSERT_EQ(life.StartsOver(), "started");
  }
  // All of one worker's life, which leaves something behind.
  static std::string Leave(LifeTranscript& life) {
    Run(1, life);
    return life.WorkerExited(0, WorkerEnd::kSucceeded, At(seconds(10)));
  }
  std::string Exited(std::size_t worker, WorkerEnd end, milliseconds at = seconds(10)) {
    return life_.WorkerExited(worker, end, At(at));
  }
  // Nothing is due, and nothing is done, before `next`.
  void ExpectNext(milliseconds next) {
    ASSERT_EQ(life_.NextDeadline(), At(next));
    EXPECT_EQ(life_.Tick(At(next) - std::chrono::nanoseconds(1)), "");
  }

  static constexpr StopLadder kLadder{
      .first_signal = SIGTERM, .grace = seconds(30), .give_up = seconds(5)};
  LifeTranscript life_{kLadder};
};

TEST_F(GroupLifeTest, WorkersSucceedOneAfterTheOther) {
  Run(2);
  EXPECT_EQ(Exited(1, WorkerEnd::kSucceeded), "");
  EXPECT_EQ(life_.running(), 1);
  life_.any_left = false;
  EXPECT_EQ(Exited(0, WorkerEnd::kSucceeded), "look; finish");
  EXPECT_EQ(life_.end(), GroupEnd::kSucceeded);
  EXPECT_EQ(life_.NextDeadline(), std::nullopt);
  EXPECT_EQ(life_.OrphanEnded(At(seconds(12))), "") << "it is over";
  EXPECT_EQ(life_.Stop(StopLadder::Now(), At(seconds(2))), "");
}

TEST_F(GroupLifeTest, FirstFailureIsToldBeforeTheOthersAreStopped) {
  Run(3);
  EXPECT_EQ(Exited(1, WorkerEnd::kFailed), "first failure: worker 1; halt; SIGTERM");
  EXPECT_EQ(Exited(0, WorkerEnd::kFailed), "another failure: worker 0")
      << "it had failed before the signal reached it";
  life_.any_left = false;
  EXPECT_EQ(Exited(2, WorkerEnd::kStopped), "look; finish");
  EXPECT_EQ(life_.end(), GroupEnd::kFailed);
}

TEST_F(GroupLifeTest, WhoIsKilledHasFailedBeforeItHasEnded) {
  Run(3);
  EXPECT_EQ(life_.WorkerKilled(1), "first failure: worker 1; halt; SIGTERM");
  EXPECT_EQ(life_.WorkerKilled(2), "") << "it was stopping";
  EXPECT_EQ(Exited(0, WorkerEnd::kFailed), "another failure: worker 0");
  EXPECT_EQ(Exited(2, WorkerEnd::kStopped), "");
  life_.any_left = false;
  EXPECT_EQ(Exited(1, WorkerEnd::kStopped), "look; finish");
  EXPECT_EQ(life_.end(), GroupEnd::kFailed);
}

TEST_F(GroupLifeTest, ListenerMayStopTheGroupItsOwnWayWhenItHearsOfTheFailure) {
  Run(2);
  life_.on_first_failure = [](GroupLife& life) {
    life.Stop({.first_signal = SIGINT, .grace = seconds(1)}, At(seconds(0)));
  };
  EXPECT_EQ(Exited(0, WorkerEnd::kFailed, seconds(0)), "first failure: worker 0; halt; SIGINT")
      << "one ladder is enough";
  ExpectNext(milliseconds(200));
  life_.any_left = false;
  EXPECT_EQ(Exited(1, WorkerEnd::kStopped), "look; finish");
  EXPECT_EQ(life_.end(), GroupEnd::kFailed) << "not stopped: it failed before";
}

// A script with a mistake in its arguments was started four times.
TEST_F(GroupLifeTest, FailuresThatAllMayHaveAreToldTogether) {
  Run(3);
  EXPECT_EQ(Exited(1, WorkerEnd::kFailedAsAllMay), "");
  ExpectNext(seconds(11));
  EXPECT_EQ(Exited(0, WorkerEnd::kFailedAsAllMay, milliseconds(10'900)), "");
  ExpectNext(seconds(11));
  life_.any_left = false;
  EXPECT_EQ(Exited(2, WorkerEnd::kFailedAsAllMay, milliseconds(10'950)),
            "first failure: worker 1, as all; another failure: worker 0, as all; another failure: "
            "worker 2, as all; halt; SIGTERM; look; finish");
  EXPECT_EQ(life_.end(), GroupEnd::kFailed);
}

TEST_F(GroupLifeTest, OnlyWorkerHasFailedAsAll) {
  life_.Begin();
  life_.WorkerStarted();
  EXPECT_EQ(Exited(0, WorkerEnd::kFailedAsAllMay), "") << "there may be more to start";
  EXPECT_EQ(life_.StartsOver(), "started; first failure: worker 0, as all; halt; SIGTERM; look");
}

TEST_F(GroupLifeTest, FailureThatOthersDoNotHaveInTimeIsToldAlone) {
  Run(3);
  EXPECT_EQ(Exited(1, WorkerEnd::kFailedAsAllMay), "");
  EXPECT_EQ(Exited(2, WorkerEnd::kFailedAsAllMay), "");
  EXPECT_EQ(life_.Tick(At(seconds(11))),
            "first failure: worker 1; another failure: worker 2; halt; SIGTERM");
  EXPECT_EQ(Exited(0, WorkerEnd::kStopped, seconds(12)), "look");
}

TEST_F(GroupLifeTest, AnotherKindOfEndIsNotWaitedFor) {
  const std::pair<WorkerEnd, const char*> ends[] = {
      {WorkerEnd::kFailed,
       "first failure: worker 1; another failure: worker 0; halt; SIGTERM; look"},
      {WorkerEnd::kSucceeded, "first failure: worker 1; halt; SIGTERM; look"}};
  for (const auto& [end, then] : ends) {
    LifeTranscript life(kLadder);
    Run(2, life);
    EXPECT_EQ(life.WorkerExited(1, WorkerEnd::kFailedAsAllMay, At(seconds(10))), "");
    EXPECT_EQ(life.WorkerExited(0, end, At(seconds(10))), then);
  }
  Run(2);
  EXPECT_EQ(Exited(1, WorkerEnd::kSucceeded), "");
  EXPECT_EQ(Exited(0, WorkerEnd::kFailedAsAllMay), "first failure: worker 0; halt; SIGTERM; look");
}

TEST_F(GroupLifeTest, StopComesBeforeFailuresAreTold) {
  Run(2);
  EXPECT_EQ(Exited(1, WorkerEnd::kFailedAsAllMay), "");
  EXPECT_EQ(life_.Stop({.first_signal = SIGINT, .grace = seconds(3)}, At(seconds(10))),
            "halt; SIGINT");
  EXPECT_EQ(Exited(0, WorkerEnd::kStopped), "") << "a failure is still to be told";
  EXPECT_EQ(life_.NextDeadline(), At(seconds(10))) << "not from inside Stop()";
  life_.any_left = false;
  EXPECT_EQ(life_.Tick(At(seconds(10))), "another failure: worker 1; look; finish");
  EXPECT_EQ(life_.end(), GroupEnd::kStopped);
}

TEST_F(GroupLifeTest, KillAndFailedStartComeBeforeFailuresThatAllMayHave) {
  Run(2);
  EXPECT_EQ(Exited(1, WorkerEnd::kFailedAsAllMay), "");
  EXPECT_EQ(life_.WorkerKilled(0),
            "first failure: worker 0; another failure: worker 1; halt; SIGTERM");
  LifeTranscript other(kLadder);
  other.Begin();
  other.WorkerStarted();
  EXPECT_EQ(other.WorkerExited(0, WorkerEnd::kFailedAsAllMay, At(seconds(10))), "");
  EXPECT_EQ(other.StartFailed(),
            "first failure: a start; another failure: worker 0; halt; SIGTERM; look");
}

TEST_F(GroupLifeTest, WorkerThatTakesTooLongToDieIsKilledAndThenLeftBehind) {
  Run(1);
  EXPECT_EQ(life_.Stop({.first_signal = SIGINT, .grace = seconds(3), .give_up = seconds(2)},
                       At(seconds(10))),
            "halt; SIGINT");
  ExpectNext(seconds(13));
  EXPECT_EQ(life_.Tick(At(seconds(13))), "name leftovers; kill");
  ExpectNext(seconds(15));
  EXPECT_EQ(life_.Tick(At(seconds(15))), "leave behind after 2000 ms; finish");
  EXPECT_EQ(life_.end(), GroupEnd::kStopped);
}

TEST_F(GroupLifeTest, WorkerThatDiesOfSigkillIsWaitedFor) {
  Run(1);
  EXPECT_EQ(life_.Stop(StopLadder::Now(), At(seconds(10))), "halt; kill");
  ExpectNext(seconds(15));
  EXPECT_EQ(Exited(0, WorkerEnd::kStopped), "look; kill again");
  ExpectNext(seconds(15));
  life_.any_left = false;
  EXPECT_EQ(life_.OrphanEnded(At(seconds(12))), "look; finish");
}

TEST_F(GroupLifeTest, SecondStopOnlyHastensTheKill) {
  Run(1);
  EXPECT_EQ(life_.Stop({.first_signal = SIGINT, .grace = seconds(30)}, At(seconds(0))),
            "halt; SIGINT");
  EXPECT_EQ(life_.Stop({.first_signal = SIGTERM, .grace = seconds(60)}, At(seconds(1))), "");
  ExpectNext(seconds(30));
  EXPECT_EQ(life_.Stop({.first_signal = SIGTERM, .grace = seconds(5)}, At(seconds(2))), "");
  ExpectNext(seconds(7));
  EXPECT_EQ(life_.Stop(StopLadder::Now(), At(seconds(3))), "kill");
  ExpectNext(seconds(8));
  EXPECT_EQ(life_.Stop(StopLadder::Now(), At(seconds(4))), "");
  ExpectNext(seconds(8));
}

TEST_F(GroupLifeTest, GraceWithoutAnEndIsEndedByAnotherStop) {
  Run(1);
  EXPECT_EQ(life_.Stop({.first_signal = SIGINT, .grace = StopLadder::kForever}, At(seconds(0))),
            "halt; SIGINT");
  EXPECT_EQ(life_.NextDeadline(), std::nullopt);
  EXPECT_EQ(life_.Stop(StopLadder::Now(), At(seconds(86400))), "kill");
}

TEST_F(GroupLifeTest, WhatWorkersLeaveBehindIsStoppedAndLookedAtLessAndLessOften) {
  Run(1);
  EXPECT_EQ(Exited(0, WorkerEnd::kFailed), "first failure: worker 0; halt; SIGTERM; look");
  ExpectNext(milliseconds(10'200));
  life_.stopped = {true, true};
  EXPECT_EQ(life_.Tick(At(milliseconds(10'200))), "stop leftovers in 30 s");
  ExpectNext(milliseconds(10'600));
  life_.stopped = {false, true};
  EXPECT_EQ(life_.Tick(At(milliseconds(10'600))), "stop leftovers in 30 s");
  ExpectNext(milliseconds(11'400));
  life_.stopped = {false, false};
  EXPECT_EQ(life_.Tick(At(milliseconds(11'400))), "stop leftovers in 30 s");
  ExpectNext(milliseconds(40'200));
  EXPECT_EQ(life_.Tick(At(milliseconds(40'200))), "name leftovers; kill");
  life_.any_left = false;
  EXPECT_EQ(life_.OrphanEnded(At(seconds(41))), "look; finish");
}

// "The upload of my checkpoint was killed when the last rank had ended."
TEST_F(GroupLifeTest, WhatSuccessfulWorkersLeaveRunningIsWaitedFor) {
  EXPECT_EQ(Leave(life_), "look");
  ExpectNext(seconds(11));
  EXPECT_EQ(life_.Tick(At(seconds(11))), "waiting up to 30 s");
  ExpectNext(seconds(40));
  EXPECT_EQ(life_.OrphanEnded(At(seconds(20))), "look") << "another is left";
  ExpectNext(seconds(40));
  life_.any_left = false;
  EXPECT_EQ(life_.OrphanEnded(At(seconds(30))), "look; finish");
  EXPECT_EQ(life_.end(), GroupEnd::kSucceeded);
}

TEST_F(GroupLifeTest, WhatIsWaitedForTooLongIsStoppedAtOnceAndNoFailure) {
  EXPECT_EQ(Leave(life_), "look");
  EXPECT_EQ(life_.Tick(At(seconds(11))), "waiting up to 30 s");
  EXPECT_EQ(life_.Tick(At(seconds(40))), "halt; SIGTERM");
  ExpectNext(seconds(40));
  life_.stopped = {true, false};
  EXPECT_EQ(life_.Tick(At(seconds(40))), "stop leftovers in 30 s");
  ExpectNext(seconds(70));
  EXPECT_EQ(life_.Tick(At(seconds(70))), "name leftovers; kill");
  EXPECT_EQ(life_.end(), GroupEnd::kSucceeded);
}

TEST_F(GroupLifeTest, StopEndsTheWait) {
  EXPECT_EQ(Leave(life_), "look");
  EXPECT_EQ(life_.Stop({.first_signal = SIGINT, .grace = seconds(5)}, At(seconds(20))),
            "halt; SIGINT");
  EXPECT_EQ(life_.Tick(At(seconds(20))), "stop leftovers in 5 s");
  ExpectNext(seconds(25));
  EXPECT_EQ(life_.Stop(StopLadder::Now(), At(seconds(21))), "kill");
  EXPECT_EQ(life_.end(), GroupEnd::kSucceeded) << "all workers had succeeded before";
}

TEST_F(GroupLifeTest, LeftoversOfSuccessfulWorkersAreStoppedOrKeptAsTheUserSays) {
  LifeTranscript stop(kLadder, LeftoverPolicy::kStop);
  EXPECT_EQ(Leave(stop), "look; halt; SIGTERM");
  EXPECT_EQ(stop.Tick(At(milliseconds(10'200))), "stop leftovers in 30 s");
  LifeTranscript keep(kLadder, LeftoverPolicy::kKeep);
  EXPECT_EQ(Leave(keep), "look; keep leftovers; finish");
  LifeTranscript no_time({.grace = seconds(0)});
  EXPECT_EQ(Leave(no_time), "look; halt; name leftovers; kill");
  LifeTranscript unlimited({.grace = StopLadder::kForever});
  EXPECT_EQ(Leave(unlimited), "look");
  EXPECT_EQ(unlimited.NextDeadline(), At(seconds(11)));
}

TEST_F(GroupLifeTest, LeftoversHaveTheWholeGraceOnceTheirWorkerHasUsedItsOwn) {
  Run(2);
  EXPECT_EQ(life_.Stop({.first_signal = SIGINT, .grace = seconds(30)}, At(seconds(0))),
            "halt; SIGINT");
  ExpectNext(seconds(30));
  EXPECT_EQ(Exited(0, WorkerEnd::kStopped, seconds(20)), "");
  ExpectNext(milliseconds(20'200));
  life_.stopped = {true, false};
  EXPECT_EQ(life_.Tick(At(milliseconds(20'200))), "stop leftovers in 30 s");
  ExpectNext(milliseconds(50'200));
  EXPECT_EQ(life_.OrphanEnded(At(seconds(21))), "") << "a worker still runs";
  ExpectNext(milliseconds(21'200));
  life_.stopped = {false, false};
  EXPECT_EQ(life_.Tick(At(milliseconds(21'200))), "stop leftovers in 30 s");
  ExpectNext(milliseconds(50'200));
}

TEST_F(GroupLifeTest, GraceWithoutAnEndIsOneForLeftoversAsWell) {
  Run(1);
  EXPECT_EQ(life_.Stop({.first_signal = SIGINT, .grace = StopLadder::kForever}, At(seconds(0))),
            "halt; SIGINT");
  EXPECT_EQ(Exited(0, WorkerEnd::kStopped, seconds(1)), "look");
  life_.stopped = {true, false};
  EXPECT_EQ(life_.Tick(At(milliseconds(1'200))), "stop leftovers");
  EXPECT_EQ(life_.NextDeadline(), std::nullopt);
}

TEST_F(GroupLifeTest, LeftoversOfTheWorkerThatFailedDoNotWaitForTheOthers) {
  Run(2);
  EXPECT_EQ(Exited(0, WorkerEnd::kFailed), "first failure: worker 0; halt; SIGTERM");
  ExpectNext(milliseconds(10'200));
  EXPECT_EQ(life_.Tick(At(milliseconds(10'200))), "stop leftovers in 30 s");
}

TEST_F(GroupLifeTest, NothingIsAskedToStopOnceAllIsKilled) {
  Run(1);
  EXPECT_EQ(Exited(0, WorkerEnd::kFailed, seconds(0)),
            "first failure: worker 0; halt; SIGTERM; look");
  EXPECT_EQ(life_.Stop(StopLadder::Now(), At(milliseconds(100))), "kill");
  EXPECT_EQ(life_.Tick(At(milliseconds(200))), "");
  ExpectNext(milliseconds(5'100));
}

TEST_F(GroupLifeTest, LoopThatStoodStillForMinutesKillsAtOnceAndStillWaitsForTheEnd) {
  Run(1);
  EXPECT_EQ(life_.Stop({.grace = seconds(1), .give_up = seconds(5)}, At(seconds(0))),
            "halt; SIGTERM");
  EXPECT_EQ(life_.Tick(At(seconds(300))), "name leftovers; kill");
  ExpectNext(seconds(305));
}

TEST_F(GroupLifeTest, WorkerThatCannotBeStartedEndsThoseThatWere) {
  life_.Begin();
  life_.WorkerStarted();
  EXPECT_EQ(life_.StartFailed(), "first failure: a start; halt; SIGTERM");
  life_.any_left = false;
  EXPECT_EQ(Exited(0, WorkerEnd::kStopped), "look; finish");
  EXPECT_EQ(life_.end(), GroupEnd::kFailed);
}

TEST_F(GroupLifeTest, OnlyWorkerThatCannotBeStartedEndsTheGroup) {
  life_.Begin();
  life_.any_left = false;
  EXPECT_EQ(life_.StartFailed(), "first failure: a start; halt; SIGTERM; look; finish");
}

TEST_F(GroupLifeTest, GroupThatIsStoppedWhileItStillStartsWaitsForTheStartsToBeOver) {
  life_.Begin();
  life_.WorkerStarted();
  EXPECT_EQ(life_.Stop({.grace = seconds(1)}, At(seconds(0))), "halt; SIGTERM");
  EXPECT_EQ(Exited(0, WorkerEnd::kStopped), "") << "others may be on their way still";
  life_.any_left = false;
  EXPECT_EQ(life_.StartsOver(), "look; finish") << "nobody hears that all were started";
  EXPECT_EQ(life_.end(), GroupEnd::kStopped);
}

TEST_F(GroupLifeTest, StartThatFailedBeforeTheGroupWasStoppedIsAFailure) {
  life_.Begin();
  EXPECT_EQ(life_.Stop({.grace = seconds(1)}, At(seconds(0))), "halt; SIGTERM");
  life_.any_left = false;
  EXPECT_EQ(life_.StartFailed(), "first failure: a start; look; finish")
      << "the ladder runs already";
  EXPECT_EQ(life_.end(), GroupEnd::kFailed);
}

TEST_F(GroupLifeTest, WorkerThatEndsBeforeTheNextIsStartedDoesNotEndTheGroup) {
  life_.Begin();
  life_.WorkerStarted();
  EXPECT_EQ(Exited(0, WorkerEnd::kSucceeded), "");
  life_.WorkerStarted();
  EXPECT_EQ(life_.StartsOver(), "started");
  EXPECT_EQ(Exited(1, WorkerEnd::kSucceeded), "look");
}

}  // namespace
}  // namespace muster::worker
