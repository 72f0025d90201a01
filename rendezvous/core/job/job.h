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

#include "rendezvous/core/job/job_history.h"
#include "rendezvous/core/job/job_progress.h"
#include "rendezvous/core/job/key_value_store.h"
#include "rendezvous/core/job/roster.h"
#include "rendezvous/core/job/round.h"
#include "rendezvous/core/job/verdicts.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/progress.h"
#include "rendezvous/core/values/quotas.h"
#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

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
// A round that does not complete ends the job (kJoinTimeout). After the verdict nothing changes;
// agents leave, and any that join get the verdict.
//
// Events that name a round other than the current one, or another incarnation of the job, are
// answered with Fenced and change nothing. If a connection breaks before the agent knows whether an
// event was heard, the event arrives twice; the second one changes nothing.
//
// Deterministic; not thread-safe; owned by the Coordinator, which has checked everything that comes
// in: names are valid, and calls other than Join name only agents that have joined.
class Job {
 public:
  // `outbox` and `store_bytes`, which the stores of all jobs share, must outlive the job. Every
  // call appends to `outbox`; its directives are addressed to attendees (AttendeeId).
  Job(std::string run_id, Incarnation incarnation, const JobSettings& settings, TimePoint now,
      Outbox* outbox, ByteBudget* store_bytes);

  // A recorded job, as if no time had passed since; its store is empty.
  Job(const JobRecord& record, TimePoint now, Outbox* outbox, ByteBudget* store_bytes);
  // Agents can reach this daemon from now on. None of a recorded job's timeouts has elapsed yet.
  void BeginToServe(TimePoint now);
  // The Coordinator adds the attendees' sessions and leases.
  JobRecord Record(TimePoint now) const;

  // An agent asks for a place in a round later than `after`: for the first time, or after its round
  // has ended.
  void Join(AttendeeId agent, const NodeInfo& node, RoundNumber after, TimePoint now);

  // The agent's workers have all been started, or have ended, in `round`. `failed_ago`: how long
  // ago a worker failed.
  void WorkersStarted(AttendeeId agent, RoundId round, TimePoint now);
  void WorkersExited(AttendeeId agent, RoundId round, const WorkersOutcome& outcome,
                     Duration failed_ago, TimePoint now);

  // The agent was heard from.
  void SetHeard(AttendeeId agent, TimePoint now) {
    if (roster_.Contains(agent)) roster_.at(agent).heard = now;
  }
  // Progress of the node's workers, and what is wrong with them, which is logged. Ranks that have
  // become stragglers are logged too, and reported to the node with group rank 0.
  void OnProgress(AttendeeId agent, const Progress& progress, TimePoint now);

  // The agent will leave once its workers are gone: the others stop now, and the next round waits
  // for it.
  void Leaving(AttendeeId agent, const std::string& why, TimePoint now);

  // The agent wants to leave if the job can go on without it; its last workers were in `round`, or
  // it still waits for a place. It is answered. Agents may leave, one after another, as long as
  // min_nodes remain, spares included. If its workers succeed while the answer is in flight, the
  // round is over all the same: the others have been told to stop by then, and cannot resume what
  // they have stopped.
  void AskToLeave(AttendeeId agent, RoundId round, const std::string& why, TimePoint now);

  // The agent is gone. `why` completes "node b ...": "was lost: its connection ended". Its workers
  // may run until `gone_by`, and no round starts before. If it was lost, it was silent for
  // `silence` and failed at some time in it.
  void Leave(AttendeeId agent, const std::string& why, TimePoint now,
             TimePoint gone_by = TimePoint::min(), std::optional<Duration> silence = {});

  // The agent's connection broke, or it has come back. While a member is out of touch, its workers
  // are probably dead and failures elsewhere are a consequence: such failures lead to another round
  // that costs no restart.
  void SetOutOfTouch(AttendeeId agent, bool out_of_touch) {
    roster_.at(agent).out_of_touch = out_of_touch;
  }

  // The agent may have missed messages: repeats what it has to do now.
  void TellAgain(AttendeeId agent);

  // Something about a node that changes nothing, for the log; `what` completes "node b ...".
  void Remark(const std::string& node_id, const std::string& what) { Log(node_id, what); }
  // Sends a notice to the users of all nodes.
  void NotifyAll(const std::string& sentence);

  // With exact ranks: the attendee that has the rank this node asks for; nullopt: none, or the job
  // has ended.
  std::optional<AttendeeId> HolderOfRank(const NodeInfo& newcomer) const;
  // The rank in question, with the messages for the newcomer and for `holder`.
  ContestedRank Contest(const NodeInfo& newcomer, AttendeeId holder) const;
  // `holder` is alive and keeps its rank, and learns that the newcomer was refused. Before the
  // first round has run, it is unknown which of the two is meant, so the job ends.
  void DefendRank(const ContestedRank& contest, AttendeeId holder, TimePoint now);

  // Log files failed to take this many more bytes of its workers' output.
  void LogBytesLost(std::uint64_t bytes) {
    // The number comes from a node and may be anything.
    log_bytes_lost_ += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - log_bytes_lost_);
  }

  // Ends the job with a kClosed verdict, unless it has one.
  void Close(const std::string& why, TimePoint now) {
    if (!verdict_) End(ClosedVerdict(Facts(), why), now);
  }

  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  // Leaves out the failure.
  JobSnapshot Describe(TimePoint now) const;
  // The record kept once the job is forgotten.
  JobRecord RecordEnd(TimePoint now) const;

  const std::string& run_id() const { return run_id_; }
  Incarnation incarnation() const { return incarnation_; }
  const JobSettings& settings() const { return settings_; }
  bool ended() const { return verdict_.has_value(); }
  const std::optional<Verdict>& verdict() const { return verdict_; }
  // When the workers of lost nodes are certainly dead.
  TimePoint workers_gone_by() const { return roster_.workers_gone_by(); }
  // No agent attends, but a lost node may still exist and come back to a round that gathers until
  // its time is up. Never true before the first round has run: a node that has run nothing can as
  // well take part in the next job of the name.
  bool awaits_return() const {
    return abandoned() && !ended() && !started_ && rounds_run_ > 0 && roster_.AnyLost();
  }
  // Workers of an earlier job of this name may run until `earliest`. Before the first Join.
  void HoldUntil(TimePoint earliest, TimePoint now) { round_->HoldUntil(earliest, now); }
  // The same for nodes that this job has lost, for the next job of its name.
  void ExpectWorkersUntil(TimePoint gone_by) { roster_.ExpectWorkersUntil(gone_by); }
  // No agent attends, and none will come back.
  bool is_over() const { return abandoned() && !awaits_return(); }
  // No agent attends.
  bool abandoned() const { return roster_.empty(); }
  bool HasNode(std::string_view node_id) const { return roster_.HasNode(node_id); }
  const std::string& HostOf(AttendeeId agent) const { return roster_.at(agent).node->host; }
  KeyValueStore& store() { return store_; }
  const LogPlaces& log_places() const { return log_places_; }

 private:
  // Ends the current round and opens the next, which starts no earlier than `earliest`; members are
  // told to stop, and spares join it. `detected`: how long ago the failure happened, if one ended
  // the round.
  void NextRound(RoundEnd why, const std::string& reason, TimePoint now,
                 TimePoint earliest = TimePoint::min(), std::optional<Duration> detected = {});
  // A worker has failed: the next round follows, at the cost of one restart.
  void Restart(const std::string& what, Duration delay, Duration detected, TimePoint now);
  // Acts on the round's completion or timeout after a call that may have caused it.
  void FollowRound(TimePoint now);
  void StartMembers(TimePoint now);
  // For the current round, which is complete.
  void MakeAssignments();
  const Assignment& AssignmentOf(int group_rank) const;
  // Remembers where the current round's ranks run. `attendees` are the members'; null where one has
  // left.
  void RememberPlaces(const std::vector<Roster::Entry*>& attendees);
  void TellStragglers(const std::vector<StragglerChange>& changes);
  JobFacts Facts() const;
  // `detected`: how long ago the failure happened, if one led to the verdict.
  void End(Verdict verdict, TimePoint now, std::optional<Duration> detected = {});
  // In a job with more than kFullVerdicts nodes, only the first of them and the node that failed
  // get the failed worker's output: to 10,000 nodes that would be 240 MB.
  static constexpr std::size_t kFullVerdicts = 64;
  void PrepareVerdict();
  const std::shared_ptr<const Directive>& VerdictFor(const Attendee& attendee) const;
  // One more member's workers have started.
  void MemberStarted(TimePoint now);
  // True if `round` is the current one and runs this agent's workers.
  bool IsCurrent(AttendeeId agent, RoundId round) const;
  // Tells the agent that its event is about another round and changes nothing.
  void Fence(AttendeeId agent, RoundId round);
  void RemindWaiting(TimePoint now);
  // Starts the history of a current round that ran before this daemon was started.
  void ResumeHistory(TimePoint now);
  bool AnySucceeded() const { return !succeeded_.empty(); }
  // Why the job cannot do without this node; empty if it can.
  std::string WhyItStays(AttendeeId agent) const;

  // The result of Record, times aside, has changed.
  void Changed() { outbox_->changed_jobs.insert(run_id_); }
  void Tell(AttendeeId agent, Directive directive);
  void Tell(AttendeeId agent, std::shared_ptr<const Directive> directive);
  // The node has no place yet; `why` is one sentence.
  void HaveWait(AttendeeId agent, const std::string& why, bool spare) {
    Tell(agent, WaitFor(why, spare));
  }
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
  // Assignments in order of group rank. Built on first use: after a restart of the daemon, members
  // ask for theirs again.
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
  // The verdict as sent to all, or in a large job to a few, and its short form for the rest.
  std::shared_ptr<const Directive> whole_verdict_;
  std::shared_ptr<const Directive> brief_verdict_;
};

}  // namespace muster::rendezvous
