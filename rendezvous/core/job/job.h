// One job: its nodes, its rounds one after another, its restart budget, its store and its verdict.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/byte_budget.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/core/job/contested_rank.h"
#include "rendezvous/core/job/job_history.h"
#include "rendezvous/core/job/job_progress.h"
#include "rendezvous/core/job/log_places.h"
#include "rendezvous/core/job/reminder.h"
#include "rendezvous/core/job/restart_budget.h"
#include "rendezvous/core/job/roster.h"
#include "rendezvous/core/job/round.h"
#include "rendezvous/core/job/verdicts.h"
#include "rendezvous/core/key_value_store.h"
#include "rendezvous/core/progress.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// The job decides what a round's end means. At any time there is one current round. While it
// gathers, agents that have no workers are in it; once it is complete its members run. It is over
// when
//  - a worker fails: one restart is taken from the job's budget and the next round gathers; with no
//    restart left, or where another would not help (RestartPolicy, WorkerFailure::final), the job
//    ends (kWorkerFailed);
//  - a member is lost or leaves before its workers have succeeded, or a newcomer finds a place and
//    the job takes newcomers at once (ScaleUp): the next round gathers, at no cost to the budget;
//  - every member's workers have succeeded: the job ends (kSucceeded).
// A round that does not complete ends the job (kJoinTimeout). After the verdict nothing changes any
// more; agents leave, and any that join are told the verdict.
//
// Events that name a round other than the current one, or another incarnation of the job, are
// answered with Fenced and change nothing. When a connection breaks before the agent knows whether
// an event was heard, the event comes twice; the second time it changes nothing.
//
// Deterministic; not thread-safe; owned by the Coordinator, which has checked everything that comes
// in: names are valid, and calls other than Join name only agents that have joined.
class Job {
 public:
  // `outbox` must outlive the job; every call appends to it. Its directives are addressed to
  // attendees (AttendeeId). So must `store_bytes`, which the stores of all jobs share.
  Job(std::string run_id, Incarnation incarnation, const JobSettings& settings, TimePoint now,
      Outbox* outbox, ByteBudget* store_bytes);

  // A recorded job, as if no time had passed since; its store is empty.
  Job(const JobRecord& record, TimePoint now, Outbox* outbox, ByteBudget* store_bytes);
  // Agents can reach this daemon from now on. Of the times of a recorded job none has passed yet.
  void BeginToServe(TimePoint now);
  // The Coordinator adds the attendees' sessions and leases.
  JobRecord Record(TimePoint now) const;

  // An agent asks for a place in a round later than `after`: for the first time, or after its round
  // has ended.
  void Join(AttendeeId agent, const NodeInfo& node, RoundNumber after, TimePoint now);

  // The agent's workers have all been started, or have ended, in `round`. A worker that failed did
  // so `failed_ago`.
  void WorkersStarted(AttendeeId agent, RoundId round, TimePoint now);
  void WorkersExited(AttendeeId agent, RoundId round, const WorkersOutcome& outcome,
                     Duration failed_ago, TimePoint now);

  // Something was heard from the agent.
  void SetHeard(AttendeeId agent, TimePoint now);
  // What the workers of its node have told, and what is wrong with them, which is said in the log.
  // Who has become a straggler by that is said there, too, and to the node with group rank 0.
  void OnProgress(AttendeeId agent, const Progress& progress, TimePoint now);

  // The agent will leave once its workers are gone: the others stop now, and the next round waits
  // for it.
  void Leaving(AttendeeId agent, const std::string& why, TimePoint now);

  // The agent wants to leave, if the job can go on without it, and last had workers in `round`, or
  // still waits for a place. It is answered. As many may leave, one after another, as leave
  // min_nodes that stay, spares among them. If its workers succeed while the answer is on its way,
  // the round is over all the same: the others have been told to stop by then, and cannot be told
  // to go on with what they have stopped.
  void AskToLeave(AttendeeId agent, RoundId round, const std::string& why, TimePoint now);

  // The agent is gone. `why` completes "node b ...": "was lost: its connection ended". Until
  // `gone_by` its workers may still run, and no round starts. If it was lost, nothing was heard
  // from it for `silence`; somewhere in that time it failed.
  void Leave(AttendeeId agent, const std::string& why, TimePoint now,
             TimePoint gone_by = TimePoint::min(), std::optional<Duration> silence = {});

  // The agent's connection broke, or it has come back. While a member is out of touch, its workers
  // are probably dead and failures elsewhere a consequence of that: such failures are followed by
  // another round that costs no restart.
  void SetOutOfTouch(AttendeeId agent, bool out_of_touch);

  // The agent may have missed what it was told: it is told again what it has to do now.
  void TellAgain(AttendeeId agent);

  // Something about a node that changes nothing, for the log; `what` completes "node b ...".
  void Remark(const std::string& node_id, const std::string& what);
  // Something that every node's user should know.
  void NotifyAll(const std::string& sentence);

  // With exact ranks: who has the rank that this node asks for; nullopt: nobody, or the job has
  // ended.
  std::optional<AttendeeId> HolderOfRank(const NodeInfo& newcomer) const;
  // The rank in question, as the newcomer and `holder` are told about it.
  ContestedRank Contest(const NodeInfo& newcomer, AttendeeId holder) const;
  // `holder` is alive and keeps its rank: it is told that the newcomer was refused. Before the
  // first round has run, nobody can know which of the two is meant, so the job ends.
  void DefendRank(const ContestedRank& contest, AttendeeId holder, TimePoint now);

  // So many more bytes of its workers' output were not taken by a log file.
  void LogBytesLost(std::uint64_t bytes) {
    // What a node says may be any number.
    log_bytes_lost_ += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - log_bytes_lost_);
  }

  // Ends the job with a kClosed verdict, unless it has one.
  void Close(const std::string& why, TimePoint now);

  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  // Without the failure.
  JobSnapshot Describe(TimePoint now) const;
  // What is remembered of it once it is forgotten.
  JobRecord RecordEnd(TimePoint now) const;

  const std::string& run_id() const { return run_id_; }
  Incarnation incarnation() const { return incarnation_; }
  const JobSettings& settings() const { return settings_; }
  bool ended() const { return verdict_.has_value(); }
  const std::optional<Verdict>& verdict() const { return verdict_; }
  // When the workers of lost nodes are certainly dead.
  TimePoint workers_gone_by() const { return roster_.workers_gone_by(); }
  // No agent attends, but a lost node may still exist, and come back to a round that gathers until
  // its time is up. Not before the first round has run: a node that has run nothing can as well
  // take part in the next job of the name.
  bool awaits_return() const {
    return abandoned() && !ended() && !started_ && rounds_run_ > 0 && roster_.AnyLost();
  }
  // Workers of an earlier job of this name may run until `earliest`. Before the first Join.
  void HoldUntil(TimePoint earliest, TimePoint now) { round_->HoldUntil(earliest, now); }
  // The same of nodes that this one has lost, for the next job of its name.
  void ExpectWorkersUntil(TimePoint gone_by) { roster_.ExpectWorkersUntil(gone_by); }
  // No agent attends or will come back.
  bool is_over() const { return abandoned() && !awaits_return(); }
  // No agent attends.
  bool abandoned() const { return roster_.empty(); }
  bool HasNode(std::string_view node_id) const { return roster_.HasNode(node_id); }
  const std::string& HostOf(AttendeeId agent) const { return roster_.at(agent).node->host; }
  KeyValueStore& store() { return store_; }
  const LogPlaces& log_places() const { return log_places_; }

 private:
  // Ends the current round and opens the next, which starts no earlier than `earliest`; members are
  // told to stop, and spares join it. What ended the round happened `detected` ago, if it was a
  // failure.
  void NextRound(RoundEnd why, const std::string& reason, TimePoint now,
                 TimePoint earliest = TimePoint::min(), std::optional<Duration> detected = {});
  // A worker has failed: the next round follows and costs a restart.
  void Restart(const std::string& what, Duration delay, Duration detected, TimePoint now);
  // Acts on what a call to the round may have changed: its completion or its time-out.
  void FollowRound(TimePoint now);
  void StartMembers(TimePoint now);
  // Of the current round, which is complete.
  void MakeAssignments();
  const Assignment& AssignmentOf(int group_rank) const;
  // They are running, or are about to. `attendees` are the members'; null where one has left.
  void RememberPlaces(const std::vector<Roster::Entry*>& attendees);
  void TellStragglers(const std::vector<StragglerChange>& changes);
  JobFacts Facts() const;
  // What led to the verdict happened `detected` ago, if it was a failure.
  void End(Verdict verdict, TimePoint now, std::optional<Duration> detected = {});
  // Of a job with more than kFullVerdicts nodes, only the first of them and the node that failed
  // are told what the failed worker wrote: to 10,000 nodes that is 240 MB.
  static constexpr std::size_t kFullVerdicts = 64;
  void PrepareVerdict();
  const std::shared_ptr<const Directive>& VerdictFor(const Attendee& attendee) const;
  // One more member's workers have started.
  void MemberStarted(TimePoint now);
  // `round` is the current one and runs this agent's workers.
  bool IsCurrent(AttendeeId agent, RoundId round) const;
  // What the agent said is about another round and changes nothing; the agent is told so.
  void Fence(AttendeeId agent, RoundId round);
  void RemindWaiting(TimePoint now);
  // The current round has run since before this daemon was started, for all that is known.
  void ResumeHistory(TimePoint now);
  bool AnySucceeded() const { return !succeeded_.empty(); }
  // Why the job cannot go on without this node; empty: it can.
  std::string WhyItStays(AttendeeId agent) const;

  // Something in the result of Record, other than the times, has changed.
  void Changed() { outbox_->changed_jobs.insert(run_id_); }
  void Tell(AttendeeId agent, Directive directive);
  void Tell(AttendeeId agent, std::shared_ptr<const Directive> directive);
  // The node has no place yet; `why` is one sentence.
  void HaveWait(AttendeeId agent, const std::string& why, bool spare);
  Waiting WaitFor(const std::string& why, bool spare) const;
  void Log(const std::string& node_id, std::string text);
  template <typename Milestone>
  void LogMilestone(std::string text, Milestone milestone);

  const std::string run_id_;
  const Incarnation incarnation_;
  const JobSettings settings_;
  Outbox* const outbox_;
  const TimePoint restored_{};  // when, if it was recorded

  std::optional<Round> round_;  // always set; replaced whole when the next one opens
  bool started_ = false;        // the current round's members have their Assignments
  // Made on first use: after a restart of the daemon each member is told its own again.
  // Its Assignments, in order of group rank.
  std::vector<std::shared_ptr<const Directive>> assignments_;
  KeyValueStore store_;
  Roster roster_;
  int starting_ = 0;         // members of the current round whose workers have not started yet
  std::set<int> succeeded_;  // group ranks of the current round whose workers are all done
  Reminder reminder_;
  int rounds_run_ = 0;
  RestartBudget budget_;
  std::string over_reason_;  // why the round before this one ended
  JobHistory history_;
  std::uint64_t log_bytes_lost_ = 0;
  LogPlaces log_places_;
  JobProgress progress_;
  std::optional<Verdict> verdict_;
  // What is told of it, and what to those who are not told all of it; null: everybody is.
  std::shared_ptr<const Directive> whole_verdict_;
  std::shared_ptr<const Directive> brief_verdict_;
};

}  // namespace muster::rendezvous
