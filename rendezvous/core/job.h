// One job: its nodes, its rounds one after another, its restart budget, its store and its verdict.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/core/directive.h"
#include "rendezvous/core/key_value_store.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/round.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// One agent's part in a job, whichever connections it comes over; numbered in order of attendance.
using AttendeeId = std::uint64_t;

// The job decides what a round's end means. At any time there is one current round. While it
// gathers, agents that have no workers are in it; once it is complete its members run. It is over
// when
//  - a worker fails: one restart is taken from the job's budget and the next round gathers; with no
//    restart left, or where another would not help (RestartPolicy, WorkerFailure::final), the job
//    ends (kWorkerFailed);
//  - a member is lost or leaves before its workers have succeeded, or a newcomer finds a place and
//    the job takes newcomers at once (ScaleUp): the next round gathers, at no cost to the budget;
//  - every member's workers have succeeded: the job ends (kSucceeded).
// A round that does not come together ends the job (kJoinTimeout). After the verdict nothing
// changes any more; agents leave, and whoever joins is told the verdict.
//
// Events that name another round than the current one, or another incarnation of the job, are
// answered with Fenced and change nothing. An event that comes twice, as happens when a connection
// breaks before it is known whether it was heard, changes nothing the second time.
//
// Deterministic; not thread-safe; owned by the Coordinator, which has checked all that comes in:
// names are valid, and only agents that have joined are named in the other calls.
class Job {
 public:
  // `outbox` must outlive the job; every call appends to it. Its directives are addressed to
  // attendees (AttendeeId).
  Job(std::string run_id, Incarnation incarnation, const JobSettings& settings, TimePoint now,
      Outbox* outbox);

  // The job that was recorded, as if no time had passed since; its store is empty.
  Job(const JobRecord& record, TimePoint now, Outbox* outbox);
  // Sessions and leases of the attendees are the Coordinator's to add.
  JobRecord Record(TimePoint now) const;

  // An agent asks for a place in a round later than `after`: for the first time, or after its round
  // has ended.
  void Join(AttendeeId agent, const NodeInfo& node, RoundNumber after, TimePoint now);

  // The agent's workers have all been started, or have ended, in `round`.
  void WorkersStarted(AttendeeId agent, RoundId round, TimePoint now);
  void WorkersExited(AttendeeId agent, RoundId round, const WorkersOutcome& outcome, TimePoint now);

  // The agent will leave once its workers are gone: the others stop now, the next round waits for
  // it.
  void Leaving(AttendeeId agent, const std::string& why, TimePoint now);

  // The agent is gone. `why` completes "node b ...": "was lost: its connection ended". Until
  // `gone_by` workers of it may still run, and no round starts.
  void Leave(AttendeeId agent, const std::string& why, TimePoint now,
             TimePoint gone_by = TimePoint::min());

  // The agent's connection broke, or it has come back. While a member is out of touch its workers
  // are likely to be dead, and failures of others to be a consequence: they are followed by another
  // round that costs no restart.
  void SetOutOfTouch(AttendeeId agent, bool out_of_touch);

  // The agent may have missed what it was told: it is told again what it has to do now.
  void TellAgain(AttendeeId agent);

  // Something about a node that changes nothing: for the log; `what` completes "node b ...".
  void Remark(const std::string& node_id, const std::string& what);
  // Something that every node's user should know.
  void NotifyAll(const std::string& sentence);

  // With exact ranks: who has the rank that this node asks for; nothing: nobody has, or the job has
  // ended.
  std::optional<AttendeeId> HolderOfRank(const NodeInfo& newcomer) const;
  // `holder`, which is there, has the rank that `newcomer` asks for: tells it so, and returns the
  // sentence that refuses the newcomer. Before the first round has run nobody can know which of the
  // two is meant, so the job ends.
  std::string RefuseRank(const NodeInfo& newcomer, AttendeeId holder, TimePoint now);

  // Ends the job with a kClosed verdict, unless it has one.
  void Close(const std::string& why, TimePoint now);

  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  JobSnapshot Describe(TimePoint now) const;

  const std::string& run_id() const { return run_id_; }
  Incarnation incarnation() const { return incarnation_; }
  const JobSettings& settings() const { return settings_; }
  bool ended() const { return verdict_.has_value(); }
  const std::optional<Verdict>& verdict() const { return verdict_; }
  // When the workers of nodes that were lost are dead for certain.
  TimePoint workers_gone_by() const { return workers_gone_by_; }
  // Nobody attends, but a node that was lost may be there still, and come back to a round that
  // gathers until its time is up. Not before the first round has run: to one that has run nothing
  // the next job of the name is as good.
  bool awaits_return() const {
    return abandoned() && !ended() && !started_ && rounds_run_ > 0 && !lost_.empty();
  }
  // Workers of an earlier job of this name may run until then. Before the first Join.
  void HoldUntil(TimePoint earliest, TimePoint now) { round_->HoldUntil(earliest, now); }
  // No agent attends.
  bool abandoned() const { return attendees_.empty(); }
  bool HasNode(std::string_view node_id) const;
  const std::string& HostOf(AttendeeId agent) const { return attendees_.at(agent).node.host; }
  KeyValueStore& store() { return store_; }

 private:
  struct Attendee {
    NodeInfo node;
    NodeState state = NodeState::kJoined;
    int group_rank = -1;
    bool leaving = false;
    RoundNumber ran = kNoRound;  // the last round it was to start workers in
    bool out_of_touch = false;
    bool stopped = false;  // has no workers, and need not be told to stop them
  };

  // Ends the current round and opens the next, to start at `earliest` at the earliest; members are
  // told to stop, spares join it.
  void NextRound(const std::string& reason, TimePoint now, TimePoint earliest = TimePoint::min());
  // A worker has failed: why there must be no restart, in words that follow those on the failure;
  // else nothing.
  std::optional<std::string> NoRestart(const WorkerFailure& failure, TimePoint now);
  void Restart(const std::string& what, TimePoint now);
  // A member of the current round that is out of touch; null: none is.
  const Attendee* FindOutOfTouch() const;
  // Acts on what a call to the round may have changed: its completion or its time-out.
  void FollowRound(TimePoint now);
  void StartMembers();
  // Of the current round, which is complete; in order of group rank.
  const std::vector<Assignment>& Assignments();
  void End(Verdict verdict);
  // True if `round` is the current one and runs; else tells the agent that it is fenced.
  bool IsCurrent(AttendeeId agent, RoundId round);
  void RemindWaiting(TimePoint now);
  bool AnySucceeded() const { return !succeeded_.empty(); }

  // Something of what Record says has changed, beside the times.
  void Changed() { outbox_->changed_jobs.insert(run_id_); }
  void Tell(AttendeeId agent, Directive directive);
  // The node has no place yet; `why` is one sentence.
  void HaveWait(AttendeeId agent, const std::string& why, bool spare);
  void Log(const std::string& node_id, std::string text);

  const std::string run_id_;
  const Incarnation incarnation_;
  const JobSettings settings_;
  Outbox* const outbox_;

  std::optional<Round> round_;  // always set; replaced whole when the next one opens
  bool started_ = false;        // the current round's members have their Assignments
  // Made when it is first asked for: after a restart of the daemon each member is told its own
  // again.
  std::vector<Assignment> assignments_;
  KeyValueStore store_;
  std::map<AttendeeId, Attendee> attendees_;  // in order of attendance
  std::set<std::string, std::less<>> node_ids_;
  std::set<int> succeeded_;  // group ranks of the current round whose workers are all done
  std::optional<TimePoint> next_reminder_;
  TimePoint workers_gone_by_ = TimePoint::min();
  // Node ids of those that were lost but may still be there, and without whom no round has begun.
  std::set<std::string> lost_;
  int rounds_run_ = 0;
  int restarts_ = 0;
  // When restarts were, as far as the policy asks: oldest first.
  std::deque<TimePoint> restart_times_;
  RepeatedFailure repeated_;
  std::string over_reason_;  // why the round before this one ended
  std::optional<Verdict> verdict_;
};

}  // namespace muster::rendezvous
