#include "test/launcher/top/jobs.h"

#include <chrono>

#include "absl/strings/str_cat.h"

namespace muster::launcher {

using rendezvous::JobSnapshot;
using rendezvous::JobState;
using rendezvous::NodeState;
using rendezvous::RoundEnd;
using std::chrono::milliseconds;
using std::chrono::seconds;

JobSnapshot RunningJob(const std::string& run_id, int nodes, int slots) {
  JobSnapshot job{.run_id = run_id,
                  .state = JobState::kRunning,
                  .sentence = absl::StrCat("round 0 has ", nodes, " nodes"),
                  .settings = {.min_nodes = nodes, .max_nodes = nodes, .max_restarts = 3},
                  .age = seconds(30),
                  .rounds = {{.number = 0,
                              .opened_ago = seconds(30),
                              .gathered = milliseconds(500),
                              .ran = milliseconds(29'500),
                              .nodes = nodes,
                              .workers = nodes * slots}}};
  for (int i = 0; i < nodes; ++i) {
    job.nodes.push_back({.node = {.node_id = absl::StrCat("node", i, "-1f"),
                                  .host = absl::StrCat("node", i),
                                  .address = absl::StrCat("10.0.0.", i + 1),
                                  .slots = slots},
                         .state = NodeState::kRunning,
                         .group_rank = i,
                         .rank_reason = absl::StrCat("keeps rank ", i)});
  }
  return job;
}

JobSnapshot RestartedJob() {
  JobSnapshot job = RunningJob("big", 2, 4);
  job.round = 1;
  job.sentence = "round 1 has 2 nodes: 0=node0, 1=node1";
  job.restart_count = 1;
  job.age = seconds(312);
  job.rounds = {{.number = 0,
                 .opened_ago = seconds(312),
                 .gathered = milliseconds(40),
                 .ran = seconds(61),
                 .nodes = 2,
                 .workers = 8,
                 .failed_rank = 5,
                 .end = RoundEnd::kWorkerFailed,
                 .reason = "rank 5 on host node1 exited with code 1 (restart 1 of 3)"},
                {.number = 1,
                 .opened_ago = seconds(251),
                 .gathered = milliseconds(1200),
                 .ran = seconds(250),
                 .nodes = 2,
                 .workers = 8}};
  for (auto& node : job.nodes) node.node.devices = {"0", "1", "2", "3"};
  return job;
}

std::vector<std::string> Rows(const Screen& screen) {
  std::vector<std::string> rows;
  for (const ScreenLine& line : screen.lines) {
    std::string& row = rows.emplace_back();
    for (const Span& span : line) row += span.text;
    row.erase(row.find_last_not_of(' ') + 1);
  }
  return rows;
}

}  // namespace muster::launcher
