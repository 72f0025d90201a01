#include "rendezvous/core/job/ended_jobs.h"

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
  jobs.Add(Ended("a", 3), TimePoint::min());
  ASSERT_NE(jobs.FindVerdict("a", 3), nullptr);
  EXPECT_EQ(jobs.FindVerdict("a", 3)->sentence, "a ended");
  EXPECT_EQ(jobs.FindVerdict("a", 2), nullptr);
  EXPECT_EQ(jobs.FindVerdict("b", 3), nullptr);
}

TEST(EndedJobsTest, WorkersOfEarlierLivesAreWaitedForToo) {
  EndedJobs jobs(10);
  const TimePoint late{seconds(9)};
  jobs.Add(Ended("a", 1), late);
  jobs.Add(Ended("a", 2), TimePoint(seconds(5)));
  EXPECT_EQ(jobs.WorkersGoneBy("a"), late);
  EXPECT_EQ(jobs.Record("a", TimePoint(seconds(7)))->workers_gone_in, seconds(2));
  EXPECT_EQ(jobs.WorkersGoneBy("b"), std::nullopt);
}

TEST(EndedJobsTest, OneThatEndedFirstIsForgottenFirst) {
  EndedJobs jobs(2);
  EXPECT_EQ(jobs.Add(Ended("a", 1), TimePoint::min()), std::nullopt);
  EXPECT_EQ(jobs.Add(Ended("b", 2), TimePoint::min()), std::nullopt);
  // Another life of it has ended since.
  EXPECT_EQ(jobs.Add(Ended("a", 3), TimePoint::min()), std::nullopt);
  EXPECT_EQ(jobs.Add(Ended("c", 4), TimePoint::min()), "b");
  EXPECT_EQ(jobs.FindVerdict("b", 2), nullptr);
  EXPECT_NE(jobs.FindVerdict("a", 3), nullptr);
}

}  // namespace
}  // namespace muster::rendezvous
