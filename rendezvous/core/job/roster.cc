#include "rendezvous/core/job/roster.h"

#include <cstdlib>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::rendezvous {

Roster::Roster(const JobRecord& record, TimePoint now)
    : lost_(record.lost.begin(), record.lost.end()) {
  for (const AttendeeRecord& attendee : record.attendees) {
    Entry& entry = *attendees_.try_emplace(attendee.id).first;
    entry.second = {attendee.node, attendee.state, attendee.group_rank, attendee.leaving,
                    attendee.ran};
    nodes_[attendee.node->node_id] = &entry;
  }
  if (record.workers_gone_in > Duration::zero()) workers_gone_by_ = now + record.workers_gone_in;
}

void Roster::Record(TimePoint now, JobRecord& record) const {
  record.lost.assign(lost_.begin(), lost_.end());
  if (workers_gone_by_ > now) record.workers_gone_in = workers_gone_by_ - now;
  for (const auto& [id, attendee] : attendees_) {
    record.attendees.push_back({.id = id,
                                .node = attendee.node,
                                .state = attendee.state,
                                .group_rank = attendee.group_rank,
                                .leaving = attendee.leaving,
                                .ran = attendee.ran});
  }
}

void Roster::Enter(AttendeeId agent, SharedNode node, TimePoint now) {
  Entry& entry = *attendees_.find(agent);
  Attendee& attendee = entry.second;
  nodes_[node->node_id] = &entry;
  lost_.erase(node->node_id);
  attendee.node = std::move(node);
  attendee.Become(NodeState::kJoined, now);
  attendee.group_rank = -1;
}

Attendee Roster::Remove(AttendeeId agent, TimePoint gone_by) {
  Attendee attendee = std::move(attendees_.at(agent));
  attendees_.erase(agent);
  nodes_.erase(attendee.node->node_id);
  ExpectWorkersUntil(gone_by);
  if (gone_by != TimePoint::min()) lost_.insert(attendee.node->node_id);
  return attendee;
}

std::vector<Roster::Entry*> Roster::AttendeesOf(const std::vector<Placement>& members) {
  std::vector<Entry*> found;
  found.reserve(members.size());
  for (const Placement& member : members) {
    const auto node = nodes_.find(member.node->node_id);
    found.push_back(node == nodes_.end() ? nullptr : node->second);
  }
  return found;
}

std::optional<AttendeeId> Roster::FindByRankHint(const std::optional<int>& rank_hint) const {
  for (const auto& [agent, attendee] : attendees_) {
    if (attendee.node->rank_hint == rank_hint) return agent;
  }
  return std::nullopt;
}

const Attendee* Roster::FindOutOfTouchMember() const {
  for (const auto& [agent, attendee] : attendees_) {
    if (attendee.out_of_touch && attendee.has_rank()) return &attendee;
  }
  return nullptr;
}

int Roster::CountOthersThatStay(AttendeeId agent) const {
  return static_cast<int>(
      std::count_if(attendees_.begin(), attendees_.end(), [agent](const auto& entry) {
        return entry.first != agent && !entry.second.leaving && !entry.second.out_of_touch;
      }));
}

std::vector<NodeSnapshot> Roster::Describe(const std::vector<Placement>& members,
                                           TimePoint now) const {
  std::vector<NodeSnapshot> nodes;
  for (const auto& [agent, attendee] : attendees_) {
    nodes.push_back({attendee.node, attendee.state, attendee.group_rank,
                     attendee.has_rank() ? members[attendee.group_rank].reason : ""});
    if (attendee.heard) nodes.back().heard_ago = now - *attendee.heard;
    if (attendee.since) nodes.back().state_ago = now - *attendee.since;
  }
  std::stable_sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
    const auto place = [](const NodeSnapshot& n) { return static_cast<unsigned>(n.group_rank); };
    return place(a) < place(b);
  });
  return nodes;
}

namespace {

// The running totals of a role while ranks are assigned.
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

constexpr char kAdvice[] = "; give each node a --node-rank of its own";

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
  // Filled in for each node in turn.
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

std::string ContestedRank::Question() const {
  return absl::StrCat("node rank ", rank, " of job '", run_id, "' is node ", holder,
                      "'s; this node waits until it is known whether that one is still there");
}

std::string ContestedRank::Refusal() const {
  return absl::StrCat("node rank ", rank, " of job '", run_id, "' is node ", holder,
                      "'s already, and node ", newcomer, " asks for it, too", kAdvice);
}

std::string ContestedRank::Warning() const {
  return absl::StrCat("node ", newcomer, " was refused: it asked for node rank ", rank,
                      ", which this node has", kAdvice);
}

std::string ContestedRank::Clash() const {
  return absl::StrCat("nodes ", holder, " and ", newcomer, " both have node rank ", rank, kAdvice);
}

void RankContests::Witness(AttendeeId holder, const KeepAlive& beat) {
  for (auto& [newcomer, contest] : contests_) {
    if (contest.holder != holder) continue;
    if (!contest.answered) {
      contest.answered = beat.number;
    } else if (beat.heard >= *contest.answered) {
      contest.holder_lives = true;
    }
  }
}

std::optional<RankContests::Decided> RankContests::TakeDecided(AgentId last, HolderOf holder_of) {
  for (auto at = contests_.upper_bound(last); at != contests_.end(); ++at) {
    auto& [newcomer, contest] = *at;
    const bool stands = holder_of(contest.request) == contest.holder;
    if (stands && !contest.holder_lives) continue;
    Decided decided{newcomer, std::move(contest.request)};
    if (stands) decided.holder = contest.holder;
    contests_.erase(at);
    return decided;
  }
  return std::nullopt;
}

}  // namespace muster::rendezvous
