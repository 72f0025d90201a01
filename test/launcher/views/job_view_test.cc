// What is shown of jobs, in tables and as JSON.
#include "rendezvous/pages/job_view.h"

#include <algorithm>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "launcher/views/status_view.h"

namespace muster::launcher {
namespace {

using rendezvous::JobSnapshot;
using rendezvous::JobState;
using rendezvous::NodeSnapshot;
using rendezvous::NodeState;
using rendezvous::TableText;
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

TEST(JobViewTest, JobIsTables) {
  JobSnapshot job = Running();
  job.nodes[0].alerts = {{.rank = 1,
                          .told = {.kind = rendezvous::RankAlertKind::kStopped,
                                   .what = "was stopped by SIGSTOP",
                                   .ago = std::chrono::seconds(12)}}};
  job.rounds = Restarted().rounds;
  EXPECT_EQ("\n" + JobText(job, absl::UTCTimeZone()), R"(
JOB   STATE    ROUND  NODES        RANKS  RESTARTS  MESSAGE
job7  running  3      2 of 2 to 4  3      1 of 3    round 3 has 2 nodes: 0=a, 1=b; 1 spare waiting

HOST  NODE  RANKS  STATE     SINCE     HEARD       ADDRESS   DEVICES  PLACE
a     0     0-1    running   42 s ago  700 ms ago  10.0.0.1  4,5      by address
b     1     2      starting  -         -           10.0.0.1  -        by address
c     -     -      spare     -         -           10.0.0.1  -        -

RANK  HOST  STEP  LOSS  STRAGGLER                           STEP TIME  SAMPLES/S  BEAT        PHASES
0     a     1200  2.31  -                                   210 ms     512        100 ms ago  data 12 ms, wait 198 ms
1     a     1200  nan   48 % slower, most in data, for 7 s  210 ms     512        100 ms ago  data 12.4 ms, wait 1.5 s
2     b     -     -     -                                   -          -          3 s ago     -

RANK  HOST  SINCE     TROUBLE
1     a     12 s ago  was stopped by SIGSTOP

ROUND  BEGAN      GATHERED  RAN   NODES  RANKS  OVER
0      70 s ago   15 ms     61 s  2      8      rank 3 on host b exited with code 1
1      9.0 s ago  -         -     -      -      -
)");
  EXPECT_EQ("\n" + JobText(Gathering(), absl::UTCTimeZone()), R"(
JOB    STATE      ROUND  NODES   RANKS  RESTARTS  MESSAGE
größe  gathering  0      1 of 2  -      0 of 0    round 0: 1 of 2 nodes are here (a); waiting for 1 more

HOST  NODE  RANKS  STATE   SINCE  HEARD  ADDRESS   DEVICES  PLACE
a     -     -      joined  -      -      10.0.0.1  -        -
)");
  EXPECT_EQ(Json::parse(JobsJson({job}))[0]["nodes"][0]["alerts"],
            Json::array({{{"rank", 1},
                          {"kind", "stopped"},
                          {"what", "was stopped by SIGSTOP"},
                          {"for_seconds", 12.0}}}));
  job.nodes[0].alerts.resize(100, job.nodes[0].alerts[0]);
  EXPECT_THAT(TableText(rendezvous::RankAlertTable(job)),
              testing::EndsWith("\nand 36 more; --json shows all\n"));
}

TEST(JobViewTest, OfManyRanksTheFirstAndTheStragglersAreShown) {
  JobSnapshot job = Running();
  job.nodes[0].ranks.clear();
  for (int rank = 0; rank < 1000; ++rank) {
    auto& told = job.nodes[0].ranks.emplace_back(rendezvous::RankSnapshot{.rank = rank});
    if (rank % 400 == 399) told.straggling = rendezvous::Straggling{0.5, "data"};
  }
  job.nodes[1].ranks.clear();
  const std::string table = TableText(rendezvous::RankTable(job));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 64 + 2 + 1);
  EXPECT_THAT(table, testing::HasSubstr("\n63    a"));
  EXPECT_THAT(table, testing::HasSubstr("\n399   a"));
  EXPECT_THAT(table, testing::HasSubstr("\n799   a"));
  EXPECT_THAT(table, testing::EndsWith("\nand 934 more; --json shows all\n"));
}

TEST(JobViewTest, ProgramsReadJson) {
  JobSnapshot job = Running();
  job.rounds = Restarted().rounds;
  EXPECT_EQ(Json::parse(JobsJson({job, Gathering()}))[0], Json::parse(R"({
    "run_id": "job7", "state": "running", "round": 3,
    "message": "round 3 has 2 nodes: 0=a, 1=b; 1 spare waiting",
    "min_nodes": 2, "max_nodes": 4, "restarts": 1, "max_restarts": 3,
    "age_seconds": 0, "productive_seconds": 0, "goodput": 0, "ended_seconds_ago": null,
    "outcome": null, "failure": null, "store_keys": 0, "store_bytes": 0, "log_bytes_lost": 0,
    "rounds": [
      {"round": 0, "opened_seconds_ago": 70, "gathered_seconds": 0.015, "ran_seconds": 61,
       "nodes": 2, "workers": 8, "failed_rank": 3, "end": "worker_failed",
       "reason": "rank 3 on host b exited with code 1"},
      {"round": 1, "opened_seconds_ago": 8.985, "gathered_seconds": null, "ran_seconds": 0,
       "nodes": 0, "workers": 0, "failed_rank": null, "end": null, "reason": ""}],
    "nodes": [
      {"node_id": "a-1", "host": "a", "address": "10.0.0.1", "state": "running",
       "state_seconds": 42, "node_rank": 0, "first_rank": 0, "nproc": 2, "role": "default",
       "devices": ["4", "5"], "place": "by address", "heard_seconds_ago": 0.7, "alerts": [],
       "ranks": [
         {"rank": 0, "step": 1200, "beat_seconds_ago": 0.1, "step_seconds": 0.21,
          "own_seconds": 0.012, "loss": 2.31, "samples_per_second": 512, "straggler": null,
          "phases": [{"name": "data", "seconds": 0.012, "waits": false},
                     {"name": "wait", "seconds": 0.198, "waits": true}]},
         {"rank": 1, "step": 1200, "beat_seconds_ago": 0.1, "step_seconds": 0.21,
          "own_seconds": 0.0124, "loss": "NaN", "samples_per_second": 512,
          "straggler": {"slower": 0.483, "phase": "data", "for_seconds": 7},
          "phases": [{"name": "data", "seconds": 0.0124, "waits": false},
                     {"name": "wait", "seconds": 1.5, "waits": true}]}]},
      {"node_id": "b-1", "host": "b", "address": "10.0.0.1", "state": "starting",
       "state_seconds": null, "node_rank": 1, "first_rank": 2, "nproc": 1, "role": "default",
       "devices": [], "place": "by address", "heard_seconds_ago": null, "alerts": [],
       "ranks": [{"rank": 2, "step": null, "beat_seconds_ago": 3, "step_seconds": null,
                  "own_seconds": null, "loss": null, "samples_per_second": null,
                  "straggler": null, "phases": []}]},
      {"node_id": "c-1", "host": "c", "address": "10.0.0.1", "state": "spare",
       "state_seconds": null, "node_rank": null, "first_rank": null, "nproc": 2,
       "role": "default", "devices": [], "place": "", "heard_seconds_ago": null,
       "alerts": [], "ranks": []}]})"));
  EXPECT_EQ(JobsJson({}), "[]\n");
}

// The page, `muster top` and metrics have the same.
TEST(JobViewTest, WhatIsKnownOfAJobIsFactsWithNames) {
  JobSnapshot job = Running();
  job.age = std::chrono::seconds(312);
  job.productive = std::chrono::seconds(300);
  const Json view = Json::parse(ViewJson(job).dump());
  EXPECT_EQ(view["state"], "running");
  EXPECT_EQ(view["facts"], Json::parse(R"([["STATE", "running"], ["ROUND", "3"],
      ["NODES", "2 of 2 to 4"], ["RANKS", "3"], ["RESTARTS", "1 of 3"], ["AGE", ["", 312.0, ""]],
      ["GOODPUT", "96 %"], ["STEP", "1200"], ["LOSS", "2.31"], ["SAMPLES/S", "1024"],
      ["STRAGGLERS", "1"]])"));
  EXPECT_EQ(view["ranks"]["columns"][4], "STRAGGLER");
  EXPECT_EQ(view["ranks"]["rows"][1]["stands_out"], true);
  EXPECT_EQ(view["ranks"]["rows"][1]["cells"][4],
            Json::array({"48 % slower, most in data, for ", 7.0, ""}));
  job.state = JobState::kEnded;
  job.outcome = rendezvous::VerdictKind::kJoinTimeout;
  EXPECT_EQ(rendezvous::FactsOf(job).front().second.before, "timed out");
  EXPECT_EQ(CellText(rendezvous::FactsOf(job)[5].second), "5 min 12 s");
}

// The node with the first ranks has left, and where those of the others begin is not known.
TEST(JobViewTest, RanksAreNotGuessed) {
  JobSnapshot job = Running();
  job.nodes.erase(job.nodes.begin());
  EXPECT_THAT(TableText(rendezvous::NodeTable(job)),
              testing::HasSubstr("b     1     -      starting"));
  EXPECT_EQ(Json::parse(JobsJson({job}))[0]["nodes"][0]["first_rank"], nullptr);
}

// A job that was called so was listed as "exptrain7": what follows U+202E reads from right to left.
TEST(JobViewTest, WhatTurnsTextAroundIsShownAndNotObeyed) {
  JobSnapshot job = Running();
  job.run_id = "exp\u202e7niart";
  EXPECT_THAT(TableText(rendezvous::JobTable({job})), testing::HasSubstr("\nexp?7niart  "));
  EXPECT_THAT(JobsJson({job}), testing::HasSubstr("\"exp\\u202e7niart\""));
}

}  // namespace
}  // namespace muster::launcher
