#include "rendezvous/core/job/roster.h"

#include <algorithm>
#include <utility>

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

}  // namespace muster::rendezvous
