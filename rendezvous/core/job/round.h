// One round of one job: the gathering of nodes into a membership with ranks.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/values/key_map.h"
#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// A round gathers, then either it is complete or its time is up; it never goes back.
//
//   gathering --(Join, Leave, Tick)--> complete    ranks are fixed, later joins are for the next
//             |                                    round
//             --(Tick)---------------> timed out   join_timeout passed with fewer than min_nodes
//
// A gathering round is complete
//  - at once when max_nodes are in;
//  - `last_call` after min_nodes were in, if it is a job's first round or every node of the round
//    before was lost: it is unknown which other nodes are coming;
//  - at once when min_nodes are in and every node of the round before is back or lost: the job
//    continues with the nodes it has, and a newcomer never costs it a wait;
//  - at join_timeout, if there are min_nodes;
// but never before `earliest`, which delays restarts and gives a lost node the time it may need to
// end its workers. Nor while a node of the round before is neither back nor lost: its workers may
// still run, however long they take to stop, and its place is kept. The join timeout starts afresh
// when the last of those is back or lost. Newcomers get the other places in order of arrival; the
// rest are spares and wait in the round, the first spare taking the first place that becomes free.
//
// Deterministic: no clock, no I/O, no random number. Not thread-safe; owned by a Coordinator's job.
class Round {
 public:
  enum class State { kGathering, kComplete, kTimedOut };

  enum class JoinOutcome {
    kMember,   // has a place
    kSpare,    // there are already max_nodes; it waits
    kAgain,    // already in; nothing changed
    kTooLate,  // the round is complete (or timed out) without it; nothing changed
  };

  // A node of the round before, which may come back to its rank.
  using Returning = ReturningRecord;

  // A round that starts to gather at `opened`, and cannot be complete before `earliest`. 1 <=
  // min_nodes <= max_nodes.
  Round(RoundNumber number, const JobSettings& settings, const std::vector<Returning>& returning,
        TimePoint opened, TimePoint earliest = TimePoint::min());

  // A recorded round, as if no time had passed since. It must not have timed out.
  Round(const RoundRecord& record, const JobSettings& settings, TimePoint now);
  RoundRecord Record(TimePoint now) const;

  // `node` asks for a place.
  JoinOutcome Join(const SharedNode& node, TimePoint now);

  // A node is lost or leaves. While the round gathers, its place, or the one kept for it, becomes
  // free. In a complete round, a spare is removed, and a member, whose workers have succeeded,
  // counts as a newcomer if it comes back. Unknown ids are ignored.
  void Leave(std::string_view node_id, TimePoint now);

  // While the round gathers: it cannot be complete before `earliest`.
  void HoldUntil(TimePoint earliest, TimePoint now);

  // Agents could not be heard for `deaf`: every deadline moves by that much.
  void Delay(Duration deaf);

  // Completes the round or times it out if that is due.
  void Tick(TimePoint now);

  // When Tick has something to do next; nullopt once the round no longer gathers.
  std::optional<TimePoint> NextDeadline() const;

  // The round in one sentence for page, log and message: which nodes are in, or why it is not
  // complete yet.
  std::string Explain(TimePoint now) const;

  // Why a spare of this round has to wait, in one sentence.
  std::string ExplainSpare() const;

  RoundNumber number() const { return number_; }
  State state() const { return state_; }

  // Once complete: the members in order of group rank. Empty before.
  const std::vector<Placement>& members() const { return members_; }

 private:
  void WaitFor(const std::vector<Returning>& nodes);
  // No longer waits for a node of the round before; false if it was not waited for.
  bool StopWaitingFor(std::string_view node_id, TimePoint now);
  // Places that are neither taken nor kept.
  int FreePlaces() const;
  void Admit(const SharedNode& node);
  void PromoteSpares();
  // Reacts to a change of membership: starts or clears the last call, completes the round if it is
  // due.
  void Settle(TimePoint now);
  void Complete();

  const RoundNumber number_;
  const JobSettings settings_;
  TimePoint gives_up_;
  TimePoint earliest_;
  // Ranks of the round before, by node id; fixed, whether or not the node comes back.
  const base::SharedValue<KeyMap<int>> previous_ranks_;

  State state_ = State::kGathering;
  // Nodes of the round before that are neither back nor lost, in the order in which they were
  // named; and their index by node id, to find one among thousands.
  std::map<std::size_t, Returning> outstanding_;
  KeyMap<std::size_t> outstanding_ids_;
  bool anyone_returned_ = false;
  std::vector<Candidate> joined_;  // until the round is complete: then they become members_
  // Ids of both, to find a node among thousands.
  KeySet joined_ids_;
  std::vector<SharedNode> spares_;
  std::optional<TimePoint> last_call_ends_;
  bool held_ = false;  // `earliest_` has not come yet
  std::vector<Placement> members_;
};

// When waiting nodes are told why they wait. Shortly after a node has come, and periodically while
// the round gathers. Part of a Job.
class Reminder {
 public:
  // A node has begun to wait.
  void Begin(TimePoint now) {
    next_ = std::min(next_.value_or(TimePoint::max()), now + std::chrono::seconds(1));
  }
  // The nodes have been told, and still wait.
  void Told(TimePoint now) { next_ = now + std::chrono::seconds(10); }
  // No node waits any more.
  void End() { next_.reset(); }

  bool IsDue(TimePoint now) const { return next_ && now >= *next_; }
  std::optional<TimePoint> next() const { return next_; }

 private:
  std::optional<TimePoint> next_;
};

}  // namespace muster::rendezvous
