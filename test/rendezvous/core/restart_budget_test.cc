// Edge cases of restart decisions; the transcripts show them in the life of a job.
#include "rendezvous/core/job/verdicts.h"

#include <chrono>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;

const WorkerFailure kFailure{.rank = 1, .what = "exited with code 3"};

TimePoint At(int second) {
  return TimePoint(seconds(second));
}

// Fails, and restarts where it may.
RestartDecision Fail(RestartBudget& budget, const WorkerFailure& failure, TimePoint now) {
  budget.Count(failure);
  const RestartDecision decision = budget.Decide(failure, now);
  if (std::holds_alternative<RestartAfter>(decision)) budget.Spend(now);
  return decision;
}

TEST(RestartBudgetTest, WithoutRestartsThereIsNothingToSay) {
  RestartBudget budget(JobSettings{});
  EXPECT_EQ(Fail(budget, kFailure, At(0)), RestartDecision(NoRestart{""}));
}

TEST(RestartBudgetTest, BudgetIsSpentAndThenEmpty) {
  RestartBudget budget(JobSettings{.max_restarts = 2});
  EXPECT_EQ(Fail(budget, kFailure, At(0)), RestartDecision(RestartAfter{}));
  EXPECT_EQ(budget.SpentInWords(), "restart 1 of 2");
  EXPECT_EQ(Fail(budget, kFailure, At(1)), RestartDecision(RestartAfter{}));
  EXPECT_EQ(Fail(budget, kFailure, At(2)),
            RestartDecision(NoRestart{", and all 2 restarts are used up"}));
  EXPECT_EQ(budget.spent(), 2);
}

TEST(RestartBudgetTest, AskingChangesNothing) {
  RestartBudget budget(JobSettings{
      .max_restarts = 5,
      .restart = {.delay = seconds(1), .longest_delay = seconds(60), .no_progress_limit = 2}});
  WorkerFailure early = kFailure;
  early.before_first_beat = true;
  budget.Count(early);
  const RestartDecision decision = budget.Decide(early, At(0));
  EXPECT_EQ(decision, RestartDecision(RestartAfter{seconds(1)}));
  EXPECT_EQ(budget.Decide(early, At(0)), decision);
  EXPECT_EQ(budget.spent(), 0);
}

TEST(RestartBudgetTest, SameFailureBeforeTheFirstBeatIsNotTriedForEver) {
  RestartBudget budget(JobSettings{.max_restarts = 9, .restart = {.no_progress_limit = 2}});
  WorkerFailure early = kFailure;
  early.before_first_beat = true;
  EXPECT_EQ(Fail(budget, early, At(0)), RestartDecision(RestartAfter{}));
  EXPECT_TRUE(std::holds_alternative<NoRestart>(Fail(budget, early, At(1))));
  // A failure after a beat ends the row.
  Fail(budget, kFailure, At(2));
  EXPECT_EQ(Fail(budget, early, At(3)), RestartDecision(RestartAfter{}));
}

TEST(RestartBudgetTest, RestartsOlderThanTheWindowDoNotCount) {
  RestartBudget budget(JobSettings{.max_restarts = 1, .restart = {.window = seconds(60)}});
  EXPECT_EQ(Fail(budget, kFailure, At(0)), RestartDecision(RestartAfter{}));
  EXPECT_EQ(Fail(budget, kFailure, At(59)),
            RestartDecision(NoRestart{", and the one restart within 60 s is used up"}));
  EXPECT_EQ(Fail(budget, kFailure, At(60)), RestartDecision(RestartAfter{}));
  EXPECT_EQ(budget.SpentInWords(), "restart 2, at most 1 in 60 s");
  EXPECT_EQ(budget.Ages(At(70)), std::vector<Duration>{seconds(10)});
}

TEST(RestartBudgetTest, DelayDoublesUntilThereWasACalmTime) {
  RestartBudget budget(JobSettings{.max_restarts = 9,
                                   .restart = {.delay = seconds(1), .longest_delay = seconds(4)}});
  EXPECT_EQ(Fail(budget, kFailure, At(0)), RestartDecision(RestartAfter{seconds(1)}));
  EXPECT_EQ(Fail(budget, kFailure, At(10)), RestartDecision(RestartAfter{seconds(2)}));
  EXPECT_EQ(Fail(budget, kFailure, At(20)), RestartDecision(RestartAfter{seconds(4)}));
  EXPECT_EQ(Fail(budget, kFailure, At(30)), RestartDecision(RestartAfter{seconds(4)}));
  EXPECT_EQ(Fail(budget, kFailure, At(70)), RestartDecision(RestartAfter{seconds(1)}));
}

TEST(RestartBudgetTest, FinalFailureIsFinal) {
  RestartBudget budget(JobSettings{.max_restarts = 9});
  WorkerFailure final = kFailure;
  final.final = true;
  EXPECT_EQ(Fail(budget, final, At(0)),
            RestartDecision(NoRestart{", after which no restart was to follow"}));
}

}  // namespace
}  // namespace muster::rendezvous
