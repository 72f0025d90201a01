// One round of one job: the gathering of nodes into a membership with ranks.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/key_map.h"
#include "rendezvous/core/rank_order.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/types.h"

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
//    before was lost: who else is coming is not known;
//  - at once when min_nodes are in and every node of the round before is back or lost: the job
//    continues with the nodes it has, and a newcomer never costs it a wait;
//  - at join_timeout, if there are min_nodes;
// but never before `earliest`, which delays restarts and gives a lost node the time it may need to
// end its workers. And never while a node of the round before is neither back nor lost: its workers
// may still run, however long they take to end, and its place is kept. The join timeout starts
// afresh when the last of those is back or lost. Newcomers get the other places in order of
// arrival; those for whom none is left are spares and wait in the round, the first spare taking the
// first place that falls free.
//
// Deterministic: no clock, no I/O, no random number. Not thread-safe; owned by a Coordinator's job.
class Round {
 public:
  enum class State { kGathering, kComplete, kTimedOut };

  enum class JoinOutcome {
    kMember,   // has a place
    kSpare,    // there are already max_nodes; it waits
    kAgain,    // was in already; nothing changed
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

  // A node is lost or leaves. While the round gathers, its place, or the one kept for it, falls
  // free; a complete round removes it if it is a spare, and a member, whose workers have succeeded,
  // is a newcomer if it comes back. An unknown name changes nothing.
  void Leave(std::string_view node_id, TimePoint now);

  // While the round gathers: it cannot be complete before `earliest`.
  void HoldUntil(TimePoint earliest, TimePoint now);

  // For so long nobody could be heard: whatever is due is due so much later.
  void Delay(Duration deaf);

  // Lets time pass: completes or ends the round if it is due.
  void Tick(TimePoint now);

  // When Tick has something to do next; nullopt once the round no longer gathers.
  std::optional<TimePoint> NextDeadline() const;

  // The round in one sentence for page, log and message: who is in, or why it is not complete yet.
  std::string Explain(TimePoint now) const;

  // Why a node that is a spare here has to wait, in one sentence.
  std::string ExplainSpare() const;

  RoundNumber number() const { return number_; }
  State state() const { return state_; }

  // Once complete: the members in order of group rank. Empty before.
  const std::vector<Placement>& members() const { return members_; }

 private:
  bool IsJoined(std::string_view node_id) const;
  bool IsSpare(std::string_view node_id) const;
  void WaitFor(const std::vector<Returning>& nodes);
  // Forgets that a node of the round before may come back; false if it was not waited for.
  bool StopWaitingFor(std::string_view node_id, TimePoint now);
  // Places that are neither taken nor kept.
  int FreePlaces() const;
  void Admit(const SharedNode& node);
  void PromoteSpares();
  // Follows a change of who is in: starts or clears the last call, completes the round if it is
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
  // Nodes of the round before that are neither back nor lost, numbered in the order in which they
  // were named; and their numbers by id, to find one among thousands.
  std::map<std::size_t, Returning> outstanding_;
  KeyMap<std::size_t> outstanding_ids_;
  bool anyone_returned_ = false;
  std::vector<Candidate> joined_;  // until the round is complete: then they are members_
  // Of both, to find a node among thousands.
  KeySet joined_ids_;
  std::vector<SharedNode> spares_;
  std::optional<TimePoint> last_call_ends_;
  bool held_ = false;  // `earliest_` has not come yet
  std::vector<Placement> members_;
};

}  // namespace muster::rendezvous
