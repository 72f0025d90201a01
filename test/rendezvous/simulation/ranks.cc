#include "test/rendezvous/simulation/ranks.h"

#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

// What every member of a round must be told alike.
auto Common(const Assignment& a) {
  return std::tie(a.run_id, a.round, a.group_world_size, a.world_size, a.master_addr, a.master_port,
                  a.restart_count, a.max_restarts);
}

}  // namespace

std::string RanksObjection(const std::vector<Member>& members) {
  const int n = static_cast<int>(members.size());
  std::vector<const Member*> by_rank(members.size());
  int workers = 0;
  std::map<std::string_view, int> role_workers;
  for (const Member& member : members) {
    const int rank = member.assignment->group_rank;
    if (rank < 0 || rank >= n) return absl::StrCat("group rank ", rank, " of ", n, " nodes");
    if (by_rank[rank] != nullptr) return absl::StrCat("group rank ", rank, " is given twice");
    by_rank[rank] = &member;
    workers += member.node->slots;
    role_workers[member.node->role] += member.node->slots;
  }

  const Assignment& first = *by_rank[0]->assignment;
  if (first.group_world_size != n || first.world_size != workers) {
    return absl::StrCat("sizes ", first.group_world_size, " and ", first.world_size, " for ", n,
                        " nodes and ", workers, " workers");
  }
  if (first.master_addr != by_rank[0]->node->address ||
      first.master_port != by_rank[0]->node->master_port) {
    return absl::StrCat("the master ", first.master_addr, ":", first.master_port,
                        " is not where group rank 0 is");
  }
  int next_rank = 0;
  std::map<std::string_view, int> next_role_rank;
  for (const Member* member : by_rank) {
    const NodeInfo& node = *member->node;
    const Assignment& assignment = *member->assignment;
    if (Common(assignment) != Common(first)) {
      return absl::StrCat("node ", node.node_id, " is told another round than its peers");
    }
    if (assignment.base_rank != next_rank) {
      return absl::StrCat("node ", node.node_id, "'s workers begin at rank ", assignment.base_rank,
                          ", not ", next_rank);
    }
    int& role_rank = next_role_rank[node.role];
    if (assignment.role_base_rank != role_rank ||
        assignment.role_world_size != role_workers[node.role]) {
      return absl::StrCat("node ", node.node_id, "'s workers begin at ", assignment.role_base_rank,
                          " of ", assignment.role_world_size, " in role ", node.role, ", not at ",
                          role_rank, " of ", role_workers[node.role]);
    }
    next_rank += node.slots;
    role_rank += node.slots;
  }
  return "";
}

}  // namespace muster::rendezvous
