// The nodes of one job: who attends, what each is doing, and who was lost but may still exist.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"

#include "rendezvous/core/values/key_map.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// One agent's part in a job. What it is doing is `state` (snapshot.h), which the Job moves on:
//
//   joined --> starting --> running --> succeeded     in a round, and has a group rank
//     ^            |           |            |
//     |            +-----------+------------+--> stopping    the round is over: no rank any more
//     +---------------------- rejoins <------------+
//   spare: asked when there was no place; becomes joined once it gets one
//
// Three flags are separate from it, as each may be set in any state:
//  - leaving: it has announced that it will leave once its workers are gone, and gets no more
//    places;
//  - out_of_touch: its connection broke, and it may yet come back;
//  - stopped: it is known to have no workers, so no Stop is sent; set only while the round is ended
//    because of it.
struct Attendee {
  SharedNode node;
  NodeState state = NodeState::kJoined;
  int group_rank = -1;  // in the current round; -1: none
  bool leaving = false;
  RoundNumber ran = kNoRound;  // the last round it was to start workers in
  bool out_of_touch = false;
  bool stopped = false;
  std::string told_to_stay{};        // the reason last logged; not recorded
  std::optional<TimePoint> heard{};  // when it was last heard
  std::optional<TimePoint> since{};  // when `state` began; nullopt: before the job was resumed

  // Enters a state, or stays in it.
  void Become(NodeState next, TimePoint now) {
    if (next == state && since) return;
    state = next;
    since = now;
  }
  // True for a member of the current round.
  bool has_rank() const { return group_rank >= 0; }
  // True if it has asked for a place and has none yet.
  bool waits() const { return state == NodeState::kJoined || state == NodeState::kSpare; }
};

// Part of a Job, which owns it and decides what the attendees are doing. Not thread-safe.
class Roster {
 public:
  // In order of session.
  using Attendees = std::map<AttendeeId, Attendee>;
  using Entry = Attendees::value_type;  // stays where it is until it is removed

  Roster() = default;
  Roster(const Roster&) = delete;
  Roster& operator=(const Roster&) = delete;
  // The roster of a recorded job, as if no time had passed since.
  Roster(const JobRecord& record, TimePoint now);
  // Adds the roster's part to `record`. The Coordinator adds sessions and leases.
  void Record(TimePoint now, JobRecord& record) const;

  // Adds `agent` if it does not attend yet.
  Attendee& FindOrAdd(AttendeeId agent) { return attendees_[agent]; }
  // It joins as `node` and is in touch, so the node is no longer lost.
  void Enter(AttendeeId agent, SharedNode node, TimePoint now);
  // Removes and returns it. It was lost if its workers may run until `gone_by`.
  Attendee Remove(AttendeeId agent, TimePoint gone_by);
  // Workers of nodes that were lost may run until `gone_by`.
  void ExpectWorkersUntil(TimePoint gone_by) {
    workers_gone_by_ = std::max(workers_gone_by_, gone_by);
  }
  // Agents could not be heard for `deaf`: workers that may run may do so for that much longer.
  void Delay(Duration deaf) {
    if (workers_gone_by_ != TimePoint::min()) workers_gone_by_ += deaf;
  }
  // Other attendees that are in touch and not leaving.
  int CountOthersThatStay(AttendeeId agent) const;
  // The job continues without its lost nodes: if the others leave, it does not wait for them.
  void ForgetLost() { lost_.clear(); }

  Attendees& attendees() { return attendees_; }
  const Attendees& attendees() const { return attendees_; }
  bool Contains(AttendeeId agent) const { return attendees_.contains(agent); }
  Attendee& at(AttendeeId agent) { return attendees_.at(agent); }
  const Attendee& at(AttendeeId agent) const { return attendees_.at(agent); }
  // True if no agent attends.
  bool empty() const { return attendees_.empty(); }
  bool HasNode(std::string_view node_id) const { return nodes_.contains(node_id); }
  // The first agent that asked for this rank.
  std::optional<AttendeeId> FindByRankHint(const std::optional<int>& rank_hint) const;
  // The attendees behind the members, in the same order; null: the node has left.
  std::vector<Entry*> AttendeesOf(const std::vector<Placement>& members);
  // A member of the current round that is out of touch; null if there is none.
  const Attendee* FindOutOfTouchMember() const;

  // True if lost nodes may still exist, and no round has begun without them.
  bool AnyLost() const { return !lost_.empty(); }
  // When the workers of lost nodes are certainly dead.
  TimePoint workers_gone_by() const { return workers_gone_by_; }

  // The nodes as tools see them, without their workers' ranks: by group rank, then in order of
  // session. `members` are those of the current round.
  std::vector<NodeSnapshot> Describe(const std::vector<Placement>& members, TimePoint now) const;

 private:
  Attendees attendees_;
  // By node id, to find a node among thousands.
  KeyMap<Entry*> nodes_;
  std::set<std::string> lost_;  // node ids
  TimePoint workers_gone_by_ = TimePoint::min();
};

// What each member of a complete round is to start: a pure function of the membership.

// What all Assignments of a round have in common.
struct RoundFacts {
  std::string run_id;
  Incarnation incarnation = 0;
  RoundNumber round = 0;
  int restart_count = 0;
  int max_restarts = 0;
  bool store_tunnel = false;
};

// One directive for each of `members`, in order of group rank. Worker ranks follow group ranks,
// both overall and within each role; group rank 0 has the store and learns where the workers may
// connect from. The same arguments give the same result, so an agent that missed its Assignment is
// given it again.
std::vector<std::shared_ptr<const Directive>> MakeAssignments(
    const RoundFacts& facts, const std::vector<Placement>& members);

// The member that has the worker of that rank, which must exist.
const Placement& MemberWith(int rank, const std::vector<Placement>& members);

// A rank that one node has and another asks for, and the messages to both.

// Nodes that bring their ranks (JobSettings::exact_ranks) may bring the same one. All messages are
// sentences for people.
struct ContestedRank {
  std::string run_id;
  int rank = 0;
  // The hosts of the two.
  std::string holder;
  std::string newcomer;

  // To the newcomer, while it is unknown whether the holder is still there.
  std::string Question() const;
  // To the newcomer: the holder is there.
  std::string Refusal() const;
  // To the holder, which continues: the newcomer was refused.
  std::string Warning() const;
  // To both, before the first round: it is unknown which of them is meant, so the job ends.
  std::string Clash() const;
};

// Newcomers that ask for a rank which another node has, and wait until it is known whether that
// node still exists.

// Part of a Coordinator, which owns it and acts on the outcome. A contest for an exact rank
// (JobSettings::exact_ranks) is open until the newcomer withdraws, until the holder no longer has
// the rank, or until the holder has given a sign of life. Not thread-safe.
class RankContests {
 public:
  // A contest that is over.
  struct Decided {
    AgentId newcomer = 0;
    JoinRequest request;
    // The node that keeps the rank; nullopt: the holder is gone, and the newcomer may ask again.
    std::optional<AttendeeId> holder;
  };

  // Returns the attendee that has the rank a request asks for; nullopt: none.
  using HolderOf = absl::FunctionRef<std::optional<AttendeeId>(const JoinRequest&)>;

  // `newcomer` waits for a sign of life from `holder`.
  void Open(AgentId newcomer, const JoinRequest& request, AttendeeId holder) {
    contests_[newcomer] = {request, holder};
  }
  // It no longer waits, if it did.
  void Withdraw(AgentId newcomer) { contests_.erase(newcomer); }

  // `holder` was heard. A keep-alive may have been in flight for long, and its sender may be dead.
  // Only one sent after the answer to an earlier keep-alive, itself heard during the contest,
  // proves that the holder is alive.
  void Witness(AttendeeId holder, const KeepAlive& beat);

  // Removes the first contest that is over, in order of the newcomers' connections, starting after
  // `last`.
  std::optional<Decided> TakeDecided(AgentId last, HolderOf holder_of);

 private:
  struct Contest {
    JoinRequest request;
    AttendeeId holder = 0;
    // The first keep-alive of the holder that was answered during the contest.
    std::optional<std::int64_t> answered{};
    bool holder_lives = false;
  };

  std::map<AgentId, Contest> contests_;
};

}  // namespace muster::rendezvous
