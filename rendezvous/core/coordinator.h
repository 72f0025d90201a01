// The daemon's decisions about all its jobs: who attends, whose lease has run out, and which job an
// event belongs to. Job decides what happens inside a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/core/attendances.h"
#include "rendezvous/core/byte_budget.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/core/ended_sessions.h"
#include "rendezvous/core/event.h"
#include "rendezvous/core/job/job.h"
#include "rendezvous/core/job/jobs.h"
#include "rendezvous/core/limits.h"
#include "rendezvous/core/rank_contests.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Events go in through the calls below, each with the time; directives for agents and transitions
// for the log come out of TakeOutbox(), which the caller empties after every call. The same calls
// have the same outcome: there is no clock, socket, thread or random number in here. Not
// thread-safe.
//
// An agent attends from its first accepted JoinRequest until its Goodbye or the end of its lease,
// or until it is told Refused or Evicted. Events from an agent that does not attend change nothing,
// so a message that was still on its way at such an end does no harm.
//
// An attendance outlives its connection: when that breaks (Disconnected) the agent has
// `reattach_grace` to come back over another one (Resume), and is then told again what it has to
// do. It also outlives the daemon, if the state is kept: Record() and Restore().
class Coordinator {
 public:
  struct Options {
    int max_jobs = static_cast<int>(limits::kJobs.most);
    int max_nodes_per_job = static_cast<int>(limits::kNodesOfJob.most);
    // Over all jobs: nodes, and bytes of their stores.
    int max_nodes = static_cast<int>(limits::kNodes.most);
    std::size_t store_bytes = limits::kStoreBytes.most;
    // What several Coordinators' stores have together; null: this is the only one. Must outlive it.
    ByteBudget* all_store_bytes = nullptr;
    // How many ended jobs are remembered, for nodes that come back.
    std::size_t max_ended_jobs = limits::kEndedJobs.most;
    // Jobs without a name of their own (kUnnamedJob) are refused, as those of two users would
    // become one. For a daemon that serves more than one job.
    bool names_required = false;
    // The incarnation of the first job; each further one has the next. Must not have been used by
    // an earlier life of this daemon.
    Incarnation first_incarnation = 1;
    // What agents are told (Welcome::durable).
    bool durable = false;
    SpokenVersions speaks{};
    // Leases that are asked for are made this long, where a lost daemon is replaced by another: no
    // agent may be given up while that takes. Beats come as often as without it. Zero: as asked.
    Duration shortest_lease = Duration::zero();
    // The same of large jobs where the daemon remembers them: when it was restarted, it has time
    // for one agent after the other, and those that it has not heard within their lease would kill
    // their workers. So much for each node that the job may have, but no more than the second.
    Duration lease_per_node = std::chrono::milliseconds(6);
    Duration longest_lease_for_nodes = std::chrono::seconds(15);
    // How long an agent whose connection broke may take to come back, at most a third of its lease.
    Duration reattach_grace = std::chrono::seconds(1);
    // How much longer than its lease an agent may take to come back to a daemon that was restarted.
    Duration restart_grace = std::chrono::seconds(5);
  };

  // torchrun's run id of jobs that were given none.
  static constexpr std::string_view kUnnamedJob = "none";

  Coordinator() : Coordinator(Options{}) {}
  explicit Coordinator(const Options& options)
      : options_(options),
        store_bytes_(options.store_bytes, options.all_store_bytes),
        jobs_(options.first_incarnation, options.max_ended_jobs, &from_jobs_, &store_bytes_) {}

  // The agent says something over its connection `agent`. The effect of each event is described
  // where it is defined (event.h) and, as far as it concerns the job, in Job.
  void Hear(AgentId agent, const Event& event, TimePoint now);
  // The agent's connection is gone without a goodbye; `why` is the cause, "its connection ended".
  // It is lost unless it comes back in time; at once if it has no session.
  void Disconnected(AgentId agent, const std::string& why, TimePoint now);
  // The agent of this session has died, and nothing of its workers is running any more: its guard
  // says so. It is lost at once, and nobody waits for the end of its lease. Nothing happens if no
  // such session attends.
  void AgentDied(const SessionToken& session, TimePoint now);

  // From now on agents that do not attend are refused; jobs continue. For a daemon that is to end.
  void Drain(const std::string& why);
  // Ends every job that has no verdict with kClosed.
  void Close(const std::string& why, TimePoint now);
  // No agent attends any job.
  bool idle() const { return attendances_.empty(); }
  int agent_count() const { return static_cast<int>(attendances_.size()); }
  int job_count() const { return static_cast<int>(jobs_.size()); }

  // Lets time pass. To be called at NextDeadline(). A late call is taken to mean that this process
  // stood still and was deaf: every lease starts afresh.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  Outbox TakeOutbox() { return std::exchange(outbox_, {}); }

  // The state of one job, or of all; of those that have ended as well (Jobs::Describe).
  std::optional<JobSnapshot> Describe(std::string_view run_id, TimePoint now) const {
    return jobs_.Describe(run_id, now);
  }
  std::vector<JobSnapshot> List(TimePoint now) const { return jobs_.Describe(now); }
  // The leases of the agents, and how punctual they are.
  LeaseFigures Leases(TimePoint now) const { return attendances_.Figures(now); }
  // What log files did not take of the output of jobs' workers, of all jobs that there have been.
  std::uint64_t log_bytes_lost() const { return log_bytes_lost_; }

  // The job's store, or null without such a job. Valid until the job is forgotten: when its last
  // agent has left.
  KeyValueStore* FindStore(std::string_view run_id);

  // The job, or null; valid as long.
  const Job* FindJob(std::string_view run_id) const { return jobs_.Find(run_id); }
  // The connection over which that attendee of a job is in touch; 0: it is not, or attends no more.
  AgentId ConnectionOf(AttendeeId attendee) {
    const AgentAttendance* const attendance = attendances_.Find(attendee);
    return attendance == nullptr ? 0 : attendance->agent;
  }

  // It attends, be it out of touch.
  bool Attends(AttendeeId attendee) { return attendances_.Find(attendee) != nullptr; }

  // What a journal is to keep, even of a job that has ended. Apart from forgetting jobs, each call
  // changes only the records of those in its Outbox's changed_jobs. nullopt: there is no such job.
  std::optional<JobRecord> Record(std::string_view run_id, TimePoint now) const;
  // Resumes a job that was recorded by an earlier life of this daemon. Its agents have their lease
  // and `restart_grace` to come back, from BeginToServe on: until then nobody can be heard, however
  // long it takes to read the rest, and nothing is due. Before any other call.
  // False, and nothing is changed: there is a job of that name already, or another attendee of that
  // number. What is written together never says so.
  bool Restore(const JobRecord& record, TimePoint now);
  // Agents can reach this daemon from now on. To be called once, after any Restore.
  void BeginToServe(TimePoint now);

 private:
  // One for each kind of event.
  void Handle(AgentId agent, const JoinRequest& request, TimePoint now);
  void Handle(AgentId agent, const Resume& resume, TimePoint now);
  void Handle(AgentId agent, const KeepAlive& beat, TimePoint now);
  void Handle(AgentId agent, const WorkersStarted& started, TimePoint now);
  void Handle(AgentId agent, const WorkersExited& exited, TimePoint now);
  void Handle(AgentId agent, const Leaving& leaving, TimePoint now);
  void Handle(AgentId agent, const AskToLeave& asked, TimePoint now);
  void Handle(AgentId agent, const Goodbye& goodbye, TimePoint now);

  // Why the request is refused, in one sentence; empty: it is not. `attendance` is its sender's, or
  // null.
  Refused Objection(const AgentAttendance* attendance, const JoinRequest& request) const;
  // The life of the job in which the node ran workers is over.
  bool RanInAnEndedLife(const JoinRequest& request) const;
  // Tells the node how that life ended.
  void TellEnd(AgentId agent, const JoinRequest& request);
  // A job that nobody attends is over when its name is asked for with other settings, in a request
  // to which there is no other objection.
  static bool GivesWay(const Job& job, const JoinRequest& request);
  // Who has the exact rank that the node asks for; nullopt: nobody.
  std::optional<AttendeeId> HolderOfRank(const JoinRequest& request) const;
  // Whether the rank's holder is still there is not known before it is heard from again, or lost;
  // until then the newcomer waits. It is refused at once if the holder cannot be lost.
  void ContestRank(AgentId agent, const JoinRequest& request, AttendeeId holder, TimePoint now);
  void RefuseRank(AgentId agent, const JoinRequest& request, AttendeeId holder, TimePoint now);
  // Handles newcomers whose holder is gone, or is known to be alive.
  void SettleContests(TimePoint now);
  // For a node that says it must not take part.
  void TurnAwayUnfit(AgentId agent, const JoinRequest& request, TimePoint now);
  AgentAttendance& Open(AgentId agent, const JoinRequest& request, TimePoint now);
  // Null if the agent does not attend.
  AgentAttendance* Find(AgentId agent);
  // Something was heard from it.
  void Renew(AgentAttendance& attendance, TimePoint now);
  // The attendance, its lease renewed; null for an agent that does not attend.
  AgentAttendance* FindAndRenew(AgentId agent, TimePoint now);
  // Takes the agent out of its job, and forgets the job if nobody is left who may continue it.
  void Remove(AgentAttendance& attendance, const std::string& why, TimePoint now,
              TimePoint gone_by = TimePoint::min(), std::optional<Duration> silence = {});
  void EndLeases(TimePoint now);
  // The agent says how many bytes of output its log files have not taken since it began.
  void CountLogBytes(AgentAttendance& attendance, std::uint64_t lost);
  void Tell(AgentId agent, Directive directive);
  // Of a job that may have so many nodes.
  Duration ShortestLease(int max_nodes) const;
  void TellWelcome(const AgentAttendance& attendance, const SpokenVersions& speaks);
  // Passes on what the jobs have to say, to where their attendees are now.
  void Forward();

  const Options options_;
  Outbox outbox_;
  Outbox from_jobs_;  // its directives are addressed to attendees
  ByteBudget store_bytes_;
  Jobs jobs_;
  AttendeeId next_attendee_ = 1;
  Attendances attendances_{options_.reattach_grace};
  EndedSessions ended_sessions_;
  RankContests contests_;
  bool is_deaf_ = false;  // something was restored, and nobody can be heard yet
  std::string draining_;  // why, when Drain was called
  std::uint64_t log_bytes_lost_ = 0;
};

}  // namespace muster::rendezvous
