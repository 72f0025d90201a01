// What Prometheus is told of ranks, and of how many.
#include "rendezvous/pages/metrics.h"

#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"

namespace muster::rendezvous {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Written(const std::vector<JobSnapshot>& jobs) {
  Exposition out;
  JobFigures().Write(jobs, out);
  WriteRankFigures(jobs, out);
  return out.Take();
}

int Lines(const std::string& text, const std::string& start) {
  int lines = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.substr(0, start.size()) == start) ++lines;
  }
  return lines;
}

TEST(RankFiguresTest, JobIsWhatItsRanksHaveInCommon) {
  const JobSnapshot job{
      .run_id = "j",
      .nodes = {{.node = {.host = "a"},
                 .ranks = {{.rank = 0, .told = {.step = 12, .samples_per_second = 64}},
                           {.rank = 1,
                            .told = {.step = 10,
                                     .loss = 2.5,
                                     .samples_per_second = 32,
                                     .phases = {{"data", 0.25}, {"wait", 1, true}}},
                            .straggling = Straggling{0.5, "data"}}}},
                {.node = {.host = "b"}}}};
  const std::string text = Written({job, {.run_id = "mute"}});
  EXPECT_THAT(text, HasSubstr("\nmuster_job_step{run_id=\"j\"} 10\n"));
  EXPECT_THAT(text, HasSubstr("\nmuster_job_loss{run_id=\"j\"} 2.5\n"));
  EXPECT_THAT(text, HasSubstr("\nmuster_job_samples_per_second{run_id=\"j\"} 96\n"));
  EXPECT_THAT(text, HasSubstr("\nmuster_job_stragglers{run_id=\"j\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nmuster_rank_step{run_id=\"j\",rank=\"0\",host=\"a\"} 12\n"));
  EXPECT_THAT(
      text, HasSubstr("\nmuster_rank_own_step_seconds{run_id=\"j\",rank=\"1\",host=\"a\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("\nmuster_rank_straggling{run_id=\"j\",rank=\"0\",host=\"a\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nmuster_rank_straggling{run_id=\"j\",rank=\"1\",host=\"a\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nmuster_straggler_slower_ratio{run_id=\"j\",rank=\"1\",host=\"a\","
                              "phase=\"data\"} 0.5\n"));
  EXPECT_EQ(Lines(text, "muster_straggler_slower_ratio{"), 1);
  EXPECT_EQ(Lines(text, "muster_rank_loss{"), 1);
  EXPECT_THAT(text, Not(HasSubstr("muster_job_step{run_id=\"mute\"")));
}

TEST(RankFiguresTest, RanksInTroubleAreCountedByWhatIsWrong) {
  const auto alert = [](int rank, RankAlertKind kind) {
    return RankAlertSnapshot{.rank = rank, .told = {.kind = kind, .what = "x"}};
  };
  const JobSnapshot job{.run_id = "j",
                        .nodes = {{.alerts = {alert(0, RankAlertKind::kStopped),
                                              alert(0, RankAlertKind::kOutputLost)}},
                                  {.alerts = {alert(3, RankAlertKind::kStopped)}}}};
  const std::string text = Written({job, {.run_id = "over", .state = JobState::kEnded}});
  EXPECT_THAT(text, Not(HasSubstr("\"over\"")));
  const std::string name = "\nmuster_job_ranks_in_trouble{run_id=\"j\",trouble=";
  EXPECT_THAT(text, HasSubstr(name + "\"stopped\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(name + "\"output_lost\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(name + "\"silent\"} 0\n"));
  EXPECT_THAT(text, HasSubstr(name + "\"other\"} 0\n"));
}

TEST(RankFiguresTest, LossThatIsNoNumberIsTold) {
  const JobSnapshot job{.run_id = "j",
                        .nodes = {{.ranks = {{.told = {.loss = std::nan("")}},
                                             {.rank = 1, .told = {.loss = -HUGE_VAL}}}}}};
  EXPECT_THAT(Written({job}), HasSubstr("\nmuster_job_loss{run_id=\"j\"} NaN\n"));
  EXPECT_THAT(Written({job}), HasSubstr("rank=\"1\",host=\"\"} -Inf\n"));
}

// A job of 100,000 ranks must not be what fills somebody's Prometheus.
TEST(RankFiguresTest, NoMoreThanAThousandRanksHaveLinesOfTheirOwn) {
  JobSnapshot job{.run_id = "j", .nodes = {{}}};
  for (int rank = 0; rank < 5000; ++rank) {
    RankSnapshot& of = job.nodes[0].ranks.emplace_back(RankSnapshot{.rank = rank});
    of.told.step = 7;
    if (rank == 4000) of.straggling = Straggling{0.5, "data"};
  }
  const std::string text = Written({job, job});
  EXPECT_EQ(Lines(text, "muster_rank_step{"), 1000);
  EXPECT_EQ(Lines(text, "muster_rank_straggling{"), 1002) << "and the stragglers of both jobs";
  EXPECT_THAT(text,
              HasSubstr("\nmuster_rank_straggling{run_id=\"j\",rank=\"4000\",host=\"\"} 1\n"));
  EXPECT_EQ(Lines(text, "muster_straggler_slower_ratio{"), 2);
}

}  // namespace
}  // namespace muster::rendezvous
