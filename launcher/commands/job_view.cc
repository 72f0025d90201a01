#include "launcher/commands/job_view.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/text_table.h"
#include "rendezvous/core/phrases.h"

namespace muster::launcher {
namespace {

using base::Json;
using rendezvous::JobSnapshot;
using rendezvous::JobState;
using rendezvous::NodeSnapshot;
using rendezvous::NodeState;

// Whether the node counts in the current round.
bool IsIn(const JobSnapshot& job, const NodeSnapshot& node) {
  return job.state == JobState::kGathering ? node.state == NodeState::kJoined
                                           : node.group_rank >= 0;
}

std::string Nodes(const JobSnapshot& job) {
  const auto in = std::count_if(job.nodes.begin(), job.nodes.end(),
                                [&job](const NodeSnapshot& node) { return IsIn(job, node); });
  const int min = job.settings.min_nodes, max = job.settings.max_nodes;
  return absl::StrCat(in, " of ", min == max ? "" : absl::StrCat(min, " to "), max);
}

int Ranks(const JobSnapshot& job) {
  int ranks = 0;
  for (const NodeSnapshot& node : job.nodes) {
    if (node.group_rank >= 0) ranks += node.node.slots;
  }
  return ranks;
}

// The first rank of each node's workers. They follow from those of the nodes before it, so behind
// one that has left already they are not known.
std::vector<std::optional<int>> FirstRanks(const JobSnapshot& job) {
  std::vector<std::optional<int>> firsts;
  int next_node = 0;
  int next_rank = 0;
  for (const NodeSnapshot& node : job.nodes) {
    if (node.group_rank != next_node) {
      firsts.push_back(std::nullopt);
      continue;
    }
    firsts.push_back(next_rank);
    ++next_node;
    next_rank += node.node.slots;
  }
  return firsts;
}

std::string RankRange(std::optional<int> first, int slots) {
  if (!first) return "";
  return slots == 1 ? absl::StrCat(*first) : absl::StrCat(*first, "-", *first + slots - 1);
}

Json ToJson(const NodeSnapshot& node, std::optional<int> first_rank) {
  const Json node_rank = node.group_rank < 0 ? Json(nullptr) : Json(node.group_rank);
  return {{"node_id", node.node.node_id},
          {"host", node.node.host},
          {"address", node.node.address},
          {"state", StateName(node.state)},
          {"node_rank", node_rank},
          {"first_rank", first_rank ? Json(*first_rank) : Json(nullptr)},
          {"nproc", node.node.slots},
          {"role", node.node.role},
          {"devices", node.node.devices},
          {"place", node.rank_reason}};
}

Json ToJson(const JobSnapshot& job) {
  Json nodes = Json::array();
  const std::vector<std::optional<int>> firsts = FirstRanks(job);
  for (std::size_t i = 0; i < job.nodes.size(); ++i) {
    nodes.push_back(ToJson(job.nodes[i], firsts[i]));
  }
  return {{"run_id", job.run_id},
          {"state", StateName(job.state)},
          {"round", job.round},
          {"message", job.sentence},
          {"min_nodes", job.settings.min_nodes},
          {"max_nodes", job.settings.max_nodes},
          {"restarts", job.restart_count},
          {"max_restarts", job.settings.max_restarts},
          {"nodes", std::move(nodes)}};
}

}  // namespace

std::string JobTable(const std::vector<JobSnapshot>& jobs) {
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "STATE", "ROUND", "NODES", "RANKS", "RESTARTS", "MESSAGE"}};
  for (const JobSnapshot& job : jobs) {
    const int ranks = Ranks(job);
    rows.push_back({job.run_id, StateName(job.state), absl::StrCat(job.round), Nodes(job),
                    ranks == 0 ? "" : absl::StrCat(ranks),
                    absl::StrCat(job.restart_count, " of ", job.settings.max_restarts),
                    job.sentence});
  }
  return base::TextTable(std::move(rows));
}

std::string NodeTable(const JobSnapshot& job) {
  std::vector<std::vector<std::string>> rows = {
      {"HOST", "NODE", "RANKS", "STATE", "ADDRESS", "DEVICES", "PLACE"}};
  const std::vector<std::optional<int>> firsts = FirstRanks(job);
  for (std::size_t i = 0; i < job.nodes.size(); ++i) {
    const NodeSnapshot& node = job.nodes[i];
    rows.push_back({node.node.host, node.group_rank < 0 ? "" : absl::StrCat(node.group_rank),
                    RankRange(firsts[i], node.node.slots), StateName(node.state), node.node.address,
                    absl::StrJoin(node.node.devices, ","), node.rank_reason});
  }
  return base::TextTable(std::move(rows));
}

std::string JobsJson(const std::vector<JobSnapshot>& jobs) {
  Json array = Json::array();
  for (const JobSnapshot& job : jobs) array.push_back(ToJson(job));
  return base::JsonText(array, /*indent=*/2) + "\n";
}

}  // namespace muster::launcher
