// The guard's decisions as transcripts: events, times and deadlines go in, actions come out.
#include "worker/tree/orphan_guard.h"

#include <string>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster::worker {
namespace {

using Event = DeadMansSwitch::Event;
using std::chrono::seconds;

constexpr std::optional<seconds> kNever;

class DeadMansSwitchTest : public ::testing::Test {
 protected:
  std::string Next(Event event, seconds now, std::optional<seconds> deadline) {
    const auto at = [](seconds time) { return DeadMansSwitch::TimePoint(time); };
    const DeadMansSwitch::Step step =
        switch_.Next(event, at(now), deadline ? std::optional(at(*deadline)) : std::nullopt);
    switch (step.kind) {
      case DeadMansSwitch::Step::kSleep:
        if (!step.until) return "sleep";
        return absl::StrCat(
            "sleep until ",
            std::chrono::duration_cast<seconds>(step.until->time_since_epoch()).count());
      case DeadMansSwitch::Step::kStrike:
        return "strike";
      case DeadMansSwitch::Step::kKillLate:
        return "kill those that came late";
      case DeadMansSwitch::Step::kStandIn:
        return "stand in for the agent";
    }
    return "";
  }

  DeadMansSwitch switch_;
};

TEST_F(DeadMansSwitchTest, AgentWithoutALeaseIsWaitedForAndNothingElse) {
  EXPECT_EQ(Next(Event::kNothing, seconds(0), kNever), "sleep");
  EXPECT_EQ(Next(Event::kLook, seconds(1'000), kNever), "sleep");
  EXPECT_EQ(Next(Event::kAgentGone, seconds(2'000), kNever), "stand in for the agent");
}

TEST_F(DeadMansSwitchTest, DeadlineThatIsMovedOnInTimeIsSleptForAgain) {
  EXPECT_EQ(Next(Event::kNothing, seconds(0), seconds(10)), "sleep until 10");
  EXPECT_EQ(Next(Event::kNothing, seconds(10), seconds(17)), "sleep until 17");
  EXPECT_EQ(Next(Event::kLook, seconds(12), seconds(14)), "sleep until 14") << "it came nearer";
  EXPECT_EQ(Next(Event::kLook, seconds(13), kNever), "sleep") << "it was taken back";
}

TEST_F(DeadMansSwitchTest, DeadlineThatComesIsStruckForOnce) {
  EXPECT_EQ(Next(Event::kNothing, seconds(0), seconds(10)), "sleep until 10");
  EXPECT_EQ(Next(Event::kNothing, seconds(10), seconds(10)), "strike");
  EXPECT_EQ(Next(Event::kNothing, seconds(11), seconds(10)), "sleep");
  EXPECT_EQ(Next(Event::kNothing, seconds(500), seconds(10)), "sleep");
}

TEST_F(DeadMansSwitchTest, AgentThatWakesUpInTheMiddleOfStartingItsWorkersFindsThemKilled) {
  EXPECT_EQ(Next(Event::kNothing, seconds(10), seconds(10)), "strike");
  EXPECT_EQ(Next(Event::kLook, seconds(300), seconds(10)), "kill those that came late");
  EXPECT_EQ(Next(Event::kNothing, seconds(300), seconds(10)), "sleep");
  EXPECT_EQ(Next(Event::kLook, seconds(301), seconds(10)), "kill those that came late");
}

TEST_F(DeadMansSwitchTest, AgentThatIsBackInTouchGetsAnotherDeadlineAndAnotherStrike) {
  EXPECT_EQ(Next(Event::kNothing, seconds(10), seconds(10)), "strike");
  EXPECT_EQ(Next(Event::kLook, seconds(20), seconds(23)), "sleep until 23");
  EXPECT_EQ(Next(Event::kNothing, seconds(23), seconds(23)), "strike");
}

TEST_F(DeadMansSwitchTest, GuardThatWasStoppedItselfStrikesForTheDeadlineThatItFinds) {
  EXPECT_EQ(Next(Event::kNothing, seconds(0), seconds(10)), "sleep until 10");
  EXPECT_EQ(Next(Event::kNothing, seconds(300), seconds(290)), "strike");
}

TEST_F(DeadMansSwitchTest, DeadlineThatIsNamedTooLateIsStruckForAtOnce) {
  EXPECT_EQ(Next(Event::kNothing, seconds(0), kNever), "sleep");
  EXPECT_EQ(Next(Event::kLook, seconds(10), seconds(9)), "strike");
}

TEST_F(DeadMansSwitchTest, AgentThatDiesAfterAStrikeIsStoodInFor) {
  EXPECT_EQ(Next(Event::kNothing, seconds(10), seconds(10)), "strike");
  EXPECT_EQ(Next(Event::kAgentGone, seconds(11), seconds(10)), "stand in for the agent");
}

}  // namespace
}  // namespace muster::worker
