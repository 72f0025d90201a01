#include "launcher/commands/job_view.h"

#include <algorithm>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;
using rendezvous::JobState;
using rendezvous::NodeSnapshot;
using rendezvous::NodeState;
using Json = nlohmann::json;

NodeSnapshot Node(const std::string& host, NodeState state, int group_rank, int slots) {
  return {.node = {.node_id = host + "-1", .host = host, .address = "10.0.0.1", .slots = slots},
          .state = state,
          .group_rank = group_rank,
          .rank_reason = group_rank < 0 ? "" : "by address"};
}

JobSnapshot Running() {
  JobSnapshot job{
      .run_id = "job7",
      .state = JobState::kRunning,
      .round = 3,
      .sentence = "round 3 has 2 nodes: 0=a, 1=b; 1 spare waiting",
      .settings = {.min_nodes = 2, .max_nodes = 4, .max_restarts = 3},
      .restart_count = 1,
      .nodes = {Node("a", NodeState::kRunning, 0, 2), Node("b", NodeState::kStarting, 1, 1),
                Node("c", NodeState::kSpare, -1, 2)}};
  job.nodes[0].node.devices = {"4", "5"};
  job.nodes[0].heard_ago = std::chrono::milliseconds(700);
  job.nodes[0].state_ago = std::chrono::seconds(42);
  const rendezvous::RankProgress told{.step = 1200,
                                      .ago = std::chrono::milliseconds(100),
                                      .loss = 2.31,
                                      .samples_per_second = 512,
                                      .step_seconds = 0.21,
                                      .phases = {{"data", 0.012}, {"wait", 0.198, true}},
                                      .timed_steps = 1200};
  job.nodes[0].ranks = {{.rank = 0, .told = told}, {.rank = 1, .told = told}};
  rendezvous::RankSnapshot& slow = job.nodes[0].ranks[1];
  slow.told.loss = std::numeric_limits<double>::quiet_NaN();
  slow.told.phases = {{"data", 0.0124}, {"wait", 1.5, true}};
  slow.straggling = rendezvous::Straggling{0.4831, "data", std::chrono::seconds(7)};
  job.nodes[1].ranks = {{.rank = 2, .told = {.ago = std::chrono::seconds(3)}}};
  return job;
}

JobSnapshot Gathering() {
  return {.run_id = "größe",
          .state = JobState::kGathering,
          .round = 0,
          .sentence = "round 0: 1 of 2 nodes are here (a); waiting for 1 more",
          .settings = {.min_nodes = 2, .max_nodes = 2},
          .nodes = {Node("a", NodeState::kJoined, -1, 2)}};
}

JobSnapshot Restarted() {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  return {.run_id = "job8",
          .age = seconds(70),
          .rounds = {{.number = 0,
                      .opened_ago = seconds(70),
                      .gathered = milliseconds(15),
                      .ran = seconds(61),
                      .nodes = 2,
                      .workers = 8,
                      .failed_rank = 3,
                      .end = rendezvous::RoundEnd::kWorkerFailed,
                      .reason = "rank 3 on host b exited with code 1"},
                     {.number = 1, .opened_ago = milliseconds(8985)}}};
}

TEST(JobViewTest, JobsAreATable) {
  EXPECT_EQ(
      JobTable({Running(), Gathering()}),
      "JOB    STATE      ROUND  NODES        RANKS  RESTARTS  MESSAGE\n"
      "job7   running    3      2 of 2 to 4  3      1 of 3    round 3 has 2 nodes: 0=a, 1=b; 1 "
      "spare waiting\n"
      "größe  gathering  0      1 of 2       -      0 of 0    round 0: 1 of 2 nodes are here (a); "
      "waiting for 1 more\n");
}

TEST(JobViewTest, NodesAreATable) {
  EXPECT_EQ(NodeTable(Running()),
            "HOST  NODE  RANKS  STATE     SINCE     HEARD       ADDRESS   DEVICES  PLACE\n"
            "a     0     0-1    running   42 s ago  700 ms ago  10.0.0.1  4,5      by address\n"
            "b     1     2      starting  -         -           10.0.0.1  -        by address\n"
            "c     -     -      spare     -         -           10.0.0.1  -        -\n");
}

TEST(JobViewTest, RanksThatTellAreATable) {
  EXPECT_EQ(RankTable(Gathering()), "");
  EXPECT_EQ(RankTable(Running()),
            "RANK  HOST  STEP  BEAT        STEP TIME  LOSS  SAMPLES/S  PHASES                    "
            "STRAGGLER\n"
            "0     a     1200  100 ms ago  210 ms     2.31  512        data 12 ms, wait 198 ms   "
            "-\n"
            "1     a     1200  100 ms ago  210 ms     nan   512        data 12.4 ms, wait 1.5 s  "
            "48 % slower, most in data, for 7 s\n"
            "2     b     -     3 s ago     -          -     -          -                         "
            "-\n");
}

TEST(JobViewTest, OfManyRanksTheFirstAndTheStragglersAreShown) {
  JobSnapshot job = Running();
  job.nodes[0].ranks.clear();
  for (int rank = 0; rank < 1000; ++rank) {
    auto& told = job.nodes[0].ranks.emplace_back(rendezvous::RankSnapshot{.rank = rank});
    if (rank % 400 == 399) told.straggling = rendezvous::Straggling{0.5, "data"};
  }
  job.nodes[1].ranks.clear();
  const std::string table = RankTable(job);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 64 + 2 + 1);
  EXPECT_THAT(table, testing::HasSubstr("\n63    a"));
  EXPECT_THAT(table, testing::HasSubstr("\n399   a"));
  EXPECT_THAT(table, testing::HasSubstr("\n799   a"));
  EXPECT_THAT(table, testing::EndsWith("\nand 934 more ranks; --json shows all\n"));
}

TEST(JobViewTest, WhatIsWrongWithRanksIsATable) {
  JobSnapshot job = Running();
  EXPECT_EQ(TroubleTable(job), "");
  job.nodes[0].troubles = {{.rank = 1,
                            .told = {.kind = rendezvous::TroubleKind::kStopped,
                                     .what = "was stopped by SIGSTOP",
                                     .ago = std::chrono::seconds(12)}}};
  job.nodes[1].troubles = {{.rank = 2,
                            .told = {.kind = rendezvous::TroubleKind::kSilent,
                                     .what = "gave no sign of life for 60 s",
                                     .ago = std::chrono::seconds(3)}}};
  EXPECT_EQ(TroubleTable(job),
            "RANK  HOST  SINCE     TROUBLE\n"
            "1     a     12 s ago  was stopped by SIGSTOP\n"
            "2     b     3 s ago   gave no sign of life for 60 s\n");
  EXPECT_EQ(Json::parse(JobsJson({job}))[0]["nodes"][0]["troubles"],
            Json::array({{{"rank", 1},
                          {"kind", "stopped"},
                          {"what", "was stopped by SIGSTOP"},
                          {"for_seconds", 12.0}}}));
  job.nodes[0].troubles.resize(100, job.nodes[0].troubles[0]);
  EXPECT_THAT(TroubleTable(job), testing::EndsWith("\nand 37 more; --json shows all\n"));
}

TEST(JobViewTest, ProgramsReadJson) {
  const Json jobs = Json::parse(JobsJson({Running(), Gathering()}));
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0]["run_id"], "job7");
  EXPECT_EQ(jobs[0]["state"], "running");
  EXPECT_EQ(jobs[0]["round"], 3);
  EXPECT_EQ(jobs[0]["message"], "round 3 has 2 nodes: 0=a, 1=b; 1 spare waiting");
  EXPECT_EQ(jobs[0]["min_nodes"], 2);
  EXPECT_EQ(jobs[0]["max_nodes"], 4);
  EXPECT_EQ(jobs[0]["restarts"], 1);
  EXPECT_EQ(jobs[0]["max_restarts"], 3);
  const Json& nodes = jobs[0]["nodes"];
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0], Json({{"node_id", "a-1"},
                            {"host", "a"},
                            {"address", "10.0.0.1"},
                            {"state", "running"},
                            {"state_seconds", 42.0},
                            {"node_rank", 0},
                            {"first_rank", 0},
                            {"nproc", 2},
                            {"role", "default"},
                            {"devices", {"4", "5"}},
                            {"place", "by address"},
                            {"heard_seconds_ago", 0.7},
                            {"ranks", nodes[0]["ranks"]},
                            {"troubles", Json::array()}}));
  EXPECT_EQ(
      nodes[0]["ranks"][0],
      Json({{"rank", 0},
            {"step", 1200},
            {"beat_seconds_ago", 0.1},
            {"step_seconds", 0.21},
            {"own_seconds", 0.012},
            {"loss", 2.31},
            {"samples_per_second", 512.0},
            {"phases", Json::array({{{"name", "data"}, {"seconds", 0.012}, {"waits", false}},
                                    {{"name", "wait"}, {"seconds", 0.198}, {"waits", true}}})},
            {"straggler", nullptr}}));
  EXPECT_EQ(nodes[0]["ranks"][1]["loss"], "NaN");
  EXPECT_EQ(nodes[0]["ranks"][1]["straggler"],
            Json({{"slower", 0.483}, {"phase", "data"}, {"for_seconds", 7.0}}));
  EXPECT_EQ(nodes[1]["ranks"][0]["step"], nullptr);
  EXPECT_EQ(nodes[1]["ranks"][0]["own_seconds"], nullptr);
  EXPECT_EQ(nodes[1]["heard_seconds_ago"], nullptr);
  EXPECT_EQ(nodes[1]["state_seconds"], nullptr);
  EXPECT_EQ(nodes[1]["first_rank"], 2);
  EXPECT_EQ(nodes[2]["node_rank"], nullptr);
  EXPECT_EQ(nodes[2]["first_rank"], nullptr);
  EXPECT_EQ(jobs[1]["state"], "gathering");
  EXPECT_EQ(JobsJson({}), "[]\n");
}

// The node with the first ranks has left, and so nobody can say where those of the others begin.
TEST(JobViewTest, RoundsAreATableWithWhatTheyCostAndWhyTheyEnded) {
  EXPECT_EQ(RoundTable(Restarted()),
            "ROUND  BEGAN      GATHERED  RAN   NODES  RANKS  OVER\n"
            "0      70 s ago   15 ms     61 s  2      8      rank 3 on host b exited with code 1\n"
            "1      9.0 s ago  -         -     -      -      -\n");
}

TEST(JobViewTest, ProgramsReadRounds) {
  const Json job = Json::parse(JobsJson({Restarted()}))[0];
  EXPECT_EQ(job["age_seconds"], 70.0);
  EXPECT_EQ(job["rounds"][0], Json({{"round", 0},
                                    {"opened_seconds_ago", 70.0},
                                    {"gathered_seconds", 0.015},
                                    {"ran_seconds", 61.0},
                                    {"nodes", 2},
                                    {"workers", 8},
                                    {"failed_rank", 3},
                                    {"end", "worker_failed"},
                                    {"reason", "rank 3 on host b exited with code 1"}}));
  EXPECT_EQ(job["rounds"][1]["gathered_seconds"], nullptr);
  EXPECT_EQ(job["rounds"][1]["end"], nullptr);
}

TEST(JobViewTest, RanksAreNotGuessed) {
  JobSnapshot job = Running();
  job.nodes.erase(job.nodes.begin());
  EXPECT_THAT(NodeTable(job), testing::HasSubstr("b     1     -      starting"));
  EXPECT_EQ(Json::parse(JobsJson({job}))[0]["nodes"][0]["first_rank"], nullptr);
}

}  // namespace
}  // namespace muster::launcher
