// The nodes of one job: who attends, what each is doing, and who was lost but may still exist.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/key_map.h"
#include "rendezvous/core/rank_order.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// One agent's part in a job. What it is doing is `state` (snapshot.h), which the Job moves on:
//
//   joined --> starting --> running --> succeeded     in a round, and has a group rank
//     ^            |           |            |
//     |            +-----------+------------+--> stopping    the round is over: no rank any more
//     +---------------------- rejoins <------------+
//   spare: asked when there was no place; becomes joined once it gets one
//
// Three flags are separate from it, as each may be raised in any state:
//  - leaving: it has said that it will leave once its workers are gone, and gets no more places;
//  - out_of_touch: its connection broke, and it may yet come back;
//  - stopped: it is known to have no workers, so it need not be told to stop them; only while the
//    round is ended because of it.
struct Attendee {
  SharedNode node;
  NodeState state = NodeState::kJoined;
  int group_rank = -1;  // in the current round; -1: none
  bool leaving = false;
  RoundNumber ran = kNoRound;  // the last round it was to start workers in
  bool out_of_touch = false;
  bool stopped = false;
  std::string told_to_stay{};        // why, as it was logged last; not recorded
  std::optional<TimePoint> heard{};  // when it was last
  std::optional<TimePoint> since{};  // when `state` began; nullopt: before the job was resumed

  // It is doing this from now on, or goes on doing it.
  void Become(NodeState next, TimePoint now) {
    if (next == state && since) return;
    state = next;
    since = now;
  }
  // It is a member of the current round.
  bool has_rank() const { return group_rank >= 0; }
  // It has asked for a place, and has none yet.
  bool waits() const { return state == NodeState::kJoined || state == NodeState::kSpare; }
};

// Part of a Job, which owns it and decides what the attendees are doing. Not thread-safe.
class Roster {
 public:
  // In order of attendance.
  using Attendees = std::map<AttendeeId, Attendee>;
  using Entry = Attendees::value_type;  // stays where it is until it is removed

  Roster() = default;
  Roster(const Roster&) = delete;
  Roster& operator=(const Roster&) = delete;
  // The roster of a recorded job, as if no time had passed since.
  Roster(const JobRecord& record, TimePoint now);
  // Adds the roster's part to `record`. The Coordinator adds sessions and leases.
  void Record(TimePoint now, JobRecord& record) const;

  // `agent` attends from now on, if it does not yet.
  Attendee& FindOrAdd(AttendeeId agent) { return attendees_[agent]; }
  // It joins as `node`, which is in touch, so it is no longer lost.
  void Enter(AttendeeId agent, SharedNode node, TimePoint now);
  // It no longer attends, and is returned. If its workers may run until `gone_by`, it was lost.
  Attendee Remove(AttendeeId agent, TimePoint gone_by);
  // Workers of nodes that were lost may run until `gone_by`.
  void ExpectWorkersUntil(TimePoint gone_by) {
    workers_gone_by_ = std::max(workers_gone_by_, gone_by);
  }
  // For so long nobody could be heard: workers that may run may do so for so much longer.
  void Delay(Duration deaf) {
    if (workers_gone_by_ != TimePoint::min()) workers_gone_by_ += deaf;
  }
  // Those that attend and are in touch, and neither leave nor are this one.
  int CountOthersThatStay(AttendeeId agent) const;
  // The job continues without the nodes that were lost: when the others leave, it does not wait for
  // them.
  void ForgetLost() { lost_.clear(); }

  Attendees& attendees() { return attendees_; }
  const Attendees& attendees() const { return attendees_; }
  bool Contains(AttendeeId agent) const { return attendees_.contains(agent); }
  Attendee& at(AttendeeId agent) { return attendees_.at(agent); }
  const Attendee& at(AttendeeId agent) const { return attendees_.at(agent); }
  // Nobody attends.
  bool empty() const { return attendees_.empty(); }
  bool HasNode(std::string_view node_id) const { return nodes_.contains(node_id); }
  // The first agent that asked for this rank.
  std::optional<AttendeeId> FindByRankHint(const std::optional<int>& rank_hint) const;
  // Who attends as the members' nodes, in their order; null: the node has left.
  std::vector<Entry*> AttendeesOf(const std::vector<Placement>& members);
  // A member of the current round that is out of touch; null: none is.
  const Attendee* FindOutOfTouchMember() const;

  // Some nodes were lost that may still exist, and no round has begun without them.
  bool AnyLost() const { return !lost_.empty(); }
  // When the workers of lost nodes are certainly dead.
  TimePoint workers_gone_by() const { return workers_gone_by_; }

  // The nodes as tools see them, but for their ranks: by group rank, then in order of attendance.
  // `members` are those of the current round.
  std::vector<NodeSnapshot> Describe(const std::vector<Placement>& members, TimePoint now) const;

 private:
  Attendees attendees_;
  // By node id, to find a node among thousands.
  KeyMap<Entry*> nodes_;
  std::set<std::string> lost_;  // node ids
  TimePoint workers_gone_by_ = TimePoint::min();
};

}  // namespace muster::rendezvous
