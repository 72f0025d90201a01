#include "rendezvous/core/job/jobs.h"

#include <chrono>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;

JobRecord Ended(const std::string& run_id, Incarnation incarnation) {
  return {.run_id = run_id,
          .incarnation = incarnation,
          .verdict = Verdict{.sentence = run_id + " ended"}};
}

TEST(EndedJobsTest, OnlyTheLifeThatEndedHasAVerdict) {
  EndedJobs jobs(10);
  jobs.Add(Ended("a", 3), TimePoint::min(), TimePoint{});
  ASSERT_NE(jobs.FindVerdict("a", 3), nullptr);
  EXPECT_EQ(jobs.FindVerdict("a", 3)->sentence, "a ended");
  EXPECT_EQ(jobs.FindVerdict("a", 2), nullptr);
  EXPECT_EQ(jobs.FindVerdict("b", 3), nullptr);
}

TEST(EndedJobsTest, WorkersOfEarlierLivesAreWaitedForToo) {
  EndedJobs jobs(10);
  const TimePoint late{seconds(9)};
  jobs.Add(Ended("a", 1), late, TimePoint{});
  jobs.Add(Ended("a", 2), TimePoint(seconds(5)), TimePoint{});
  EXPECT_EQ(jobs.WorkersGoneBy("a"), late);
  EXPECT_EQ(jobs.Record("a", TimePoint(seconds(7)))->workers_gone_in, seconds(2));
  EXPECT_EQ(jobs.WorkersGoneBy("b"), std::nullopt);
}

TEST(EndedJobsTest, OneThatEndedFirstIsForgottenFirst) {
  EndedJobs jobs(2);
  EXPECT_EQ(jobs.Add(Ended("a", 1), TimePoint::min(), TimePoint{}), std::nullopt);
  EXPECT_EQ(jobs.Add(Ended("b", 2), TimePoint::min(), TimePoint{}), std::nullopt);
  // Another life of it has ended since.
  EXPECT_EQ(jobs.Add(Ended("a", 3), TimePoint::min(), TimePoint{}), std::nullopt);
  EXPECT_EQ(jobs.Add(Ended("c", 4), TimePoint::min(), TimePoint{}), "b");
  EXPECT_EQ(jobs.FindVerdict("b", 2), nullptr);
  EXPECT_NE(jobs.FindVerdict("a", 3), nullptr);
}

TEST(EndedJobsTest, JobsAreInTheOrderInWhichTheyEnded) {
  EndedJobs jobs(2);
  JobRecord late = Ended("late", 1);
  late.history.ended_ago = seconds(1);
  JobRecord early = Ended("early", 2);
  early.history.ended_ago = seconds(5);
  // In a journal's order: by name.
  jobs.Add(late, TimePoint::min(), TimePoint(seconds(10)));
  jobs.Add(early, TimePoint::min(), TimePoint(seconds(10)));
  const auto shown = jobs.Describe(TimePoint(seconds(10)));
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].run_id, "late");
  JobRecord now = Ended("now", 3);
  now.history.ended_ago = seconds(0);
  EXPECT_EQ(jobs.Add(now, TimePoint::min(), TimePoint(seconds(10))), "early");
}

// After an upgrade of the daemon, `muster status` showed jobs from months ago and none of those
// that had just failed: the older release had not recorded when they ended.
TEST(EndedJobsTest, JobsOfAnOlderJournalEndedBeforeAllOthers) {
  EndedJobs jobs(2);
  JobRecord known = Ended("known", 1);
  known.history.ended_ago = seconds(5);
  jobs.Add(known, TimePoint::min(), TimePoint(seconds(10)));
  jobs.Add(Ended("old", 2), TimePoint::min(), TimePoint(seconds(10)));
  const auto shown = jobs.Describe(TimePoint(seconds(10)));
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].run_id, "known");
  EXPECT_EQ(shown[1].ended_ago, std::nullopt);
  JobRecord now = Ended("now", 3);
  now.history.ended_ago = seconds(0);
  EXPECT_EQ(jobs.Add(now, TimePoint::min(), TimePoint(seconds(10))), "old");
}

// A restarted daemon kept the rounds of all 1,024 jobs in memory: in the journal's order, by name,
// most of them come after later ones.
TEST(EndedJobsTest, OnlyThoseThatAreShownKeepTheirRoundsInWhateverOrderTheyCome) {
  EndedJobs jobs(1000);
  const int count = static_cast<int>(EndedJobs::kShown) + 50;
  for (int i = 0; i < count; ++i) {
    JobRecord record = Ended("job" + std::to_string(i), 1);
    record.history = {.ended_ago = seconds(i), .rounds = {{.number = 4}}};
    jobs.Add(record, TimePoint::min(), TimePoint(seconds(count)));
  }
  int with_rounds = 0;
  for (int i = 0; i < count; ++i) {
    const auto job = jobs.Describe("job" + std::to_string(i), TimePoint(seconds(count)));
    with_rounds += job->rounds.empty() ? 0 : 1;
  }
  EXPECT_EQ(with_rounds, static_cast<int>(EndedJobs::kShown));
  EXPECT_FALSE(jobs.Describe("job0", TimePoint(seconds(count)))->rounds.empty());
}

// `muster status` printed that there is no such job when a user asked why it had failed.
TEST(EndedJobsTest, LastAreShownWithTheirRoundsAndFailures) {
  EndedJobs jobs(1000);
  const int count = static_cast<int>(EndedJobs::kShown) + 5;
  for (int i = 0; i < count; ++i) {
    JobRecord record = Ended("job" + std::to_string(i), 1);
    record.verdict->kind = VerdictKind::kWorkerFailed;
    record.verdict->root_cause = WorkerFailure{.rank = i};
    record.history = {.age = seconds(7),
                      .ended_ago = seconds(1),
                      .rounds = {{.number = 4, .opened_ago = seconds(5)}}};
    jobs.Add(record, TimePoint::min(), TimePoint(seconds(i)));
  }
  const auto shown = jobs.Describe(TimePoint(seconds(count)));
  ASSERT_EQ(shown.size(), EndedJobs::kShown);
  const JobSnapshot& last = shown.front();
  EXPECT_EQ(last.run_id, "job" + std::to_string(count - 1));
  EXPECT_EQ(last.state, JobState::kEnded);
  EXPECT_EQ(last.outcome, VerdictKind::kWorkerFailed);
  EXPECT_EQ(last.age, seconds(7));
  EXPECT_EQ(last.ended_ago, seconds(2));
  EXPECT_EQ(last.rounds.at(0).opened_ago, seconds(6));
  EXPECT_EQ(last.round, 4);
  EXPECT_EQ(last.failure, std::nullopt) << "a list must not cost what failed ranks wrote";

  const auto first = jobs.Describe("job0", TimePoint(seconds(count)));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->failure->rank, 0);
  EXPECT_TRUE(first->rounds.empty()) << "only those that are shown keep them";
  EXPECT_EQ(jobs.Describe("no such job", TimePoint{}), std::nullopt);
}

}  // namespace
}  // namespace muster::rendezvous
