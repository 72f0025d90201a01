#include "rendezvous/core/job/assignments.h"

#include <cstdlib>
#include <map>
#include <set>

namespace muster::rendezvous {

std::vector<Assignment> MakeAssignments(const RoundFacts& facts,
                                        const std::vector<Placement>& members) {
  std::map<std::string, int> role_sizes;
  std::set<std::string> addresses;
  int world_size = 0;
  for (const Placement& member : members) {
    role_sizes[member.node.role] += member.node.slots;
    world_size += member.node.slots;
    addresses.insert(member.node.address);
    addresses.insert(member.node.addresses.begin(), member.node.addresses.end());
  }

  std::vector<Assignment> assignments;
  assignments.reserve(members.size());
  std::map<std::string, int> next_role_rank;
  int next_rank = 0;
  for (const Placement& member : members) {
    int& role_rank = next_role_rank[member.node.role];
    assignments.push_back({.run_id = facts.run_id,
                           .incarnation = facts.incarnation,
                           .round = facts.round,
                           .group_rank = member.group_rank,
                           .group_world_size = static_cast<int>(members.size()),
                           .base_rank = next_rank,
                           .world_size = world_size,
                           .role_base_rank = role_rank,
                           .role_world_size = role_sizes[member.node.role],
                           .master_addr = members[0].node.address,
                           .master_port = members[0].node.master_port,
                           .agent_store = members[0].node.serves_store,
                           .store_tunnel = facts.store_tunnel,
                           .restart_count = facts.restart_count,
                           .max_restarts = facts.max_restarts,
                           .rank_reason = member.reason});
    next_rank += member.node.slots;
    role_rank += member.node.slots;
  }
  assignments.front().member_addresses.assign(addresses.begin(), addresses.end());
  return assignments;
}

const Placement& MemberWith(int rank, const std::vector<Placement>& members) {
  int first_rank = 0;
  for (const Placement& member : members) {
    first_rank += member.node.slots;
    if (rank < first_rank) return member;
  }
  std::abort();
}

}  // namespace muster::rendezvous
