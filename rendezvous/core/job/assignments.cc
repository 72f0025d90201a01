#include "rendezvous/core/job/assignments.h"

#include <cstdlib>
#include <functional>
#include <map>
#include <string_view>

#include "rendezvous/core/key_map.h"

namespace muster::rendezvous {
namespace {

// Where the workers of a role stand while ranks are given out.
struct Role {
  int size = 0;
  int next_rank = 0;
};

// Of all members, each once.
std::vector<std::string> AddressesOf(const std::vector<Placement>& members) {
  std::vector<std::string> addresses;
  addresses.reserve(members.size());
  absl::flat_hash_set<std::string_view, KeyHash, std::equal_to<>> known;
  known.reserve(members.size());
  const auto add = [&](const std::string& address) {
    if (known.insert(address).second) addresses.push_back(address);
  };
  for (const Placement& member : members) {
    add(member.node->address);
    for (const std::string& address : member.node->addresses) add(address);
  }
  return addresses;
}

}  // namespace

std::vector<std::shared_ptr<const Directive>> MakeAssignments(
    const RoundFacts& facts, const std::vector<Placement>& members) {
  if (members.empty()) return {};
  std::map<std::string_view, Role> roles;
  int world_size = 0;
  for (const Placement& member : members) {
    roles[member.node->role].size += member.node->slots;
    world_size += member.node->slots;
  }

  const NodeInfo& first = members.front().node;
  // Each node's in turn.
  Assignment assignment{.run_id = facts.run_id,
                        .incarnation = facts.incarnation,
                        .round = facts.round,
                        .group_world_size = static_cast<int>(members.size()),
                        .world_size = world_size,
                        .master_addr = first.address,
                        .master_port = first.master_port,
                        .agent_store = first.serves_store,
                        .store_tunnel = facts.store_tunnel,
                        .member_addresses = AddressesOf(members),
                        .restart_count = facts.restart_count,
                        .max_restarts = facts.max_restarts};
  std::vector<std::shared_ptr<const Directive>> assignments;
  assignments.reserve(members.size());
  int next_rank = 0;
  for (const Placement& member : members) {
    Role& role = roles[member.node->role];
    assignment.group_rank = member.group_rank;
    assignment.base_rank = next_rank;
    assignment.role_base_rank = role.next_rank;
    assignment.role_world_size = role.size;
    assignment.rank_reason = member.reason;
    assignments.push_back(std::make_shared<const Directive>(assignment));
    assignment.member_addresses.clear();
    next_rank += member.node->slots;
    role.next_rank += member.node->slots;
  }
  return assignments;
}

const Placement& MemberWith(int rank, const std::vector<Placement>& members) {
  int first_rank = 0;
  for (const Placement& member : members) {
    first_rank += member.node->slots;
    if (rank < first_rank) return member;
  }
  std::abort();
}

}  // namespace muster::rendezvous
