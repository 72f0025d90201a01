// The daemon's decisions about all its jobs: who attends, whose lease has run out, and which job an
// event belongs to. Job decides what happens inside a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/core/job/job.h"
#include "rendezvous/core/job/jobs.h"
#include "rendezvous/core/job/roster.h"
#include "rendezvous/core/session_table.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/quotas.h"
#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// Events go in through the calls below, each with the time. Directives for agents and transitions
// for the log come out of TakeOutbox(), which the caller empties after every call. Deterministic:
// no clock, socket, thread or random number. Not thread-safe.
//
// An agent attends from its first accepted JoinRequest until its Goodbye or the end of its lease,
// or until it is told Refused or Evicted. Events from an agent that does not attend change nothing,
// so a message still in flight at that point does no harm.
//
// A session outlives its connection: when that breaks (Disconnected), the agent has
// `reattach_grace` to come back over another one (Resume), and its current directive is then sent
// again. It also outlives the daemon, if the state is kept: Record() and Restore().
class Coordinator {
 public:
  struct Options {
    int max_jobs = static_cast<int>(limits::kJobs.most);
    int max_nodes_per_job = static_cast<int>(limits::kNodesOfJob.most);
    // Limits over all jobs: nodes, and bytes of their stores.
    int max_nodes = static_cast<int>(limits::kNodes.most);
    std::size_t store_bytes = limits::kStoreBytes.most;
    // Shared by the stores of several Coordinators; null: this is the only one. Must outlive it.
    ByteBudget* all_store_bytes = nullptr;
    // How many ended jobs are remembered, for nodes that come back.
    std::size_t max_ended_jobs = limits::kEndedJobs.most;
    // Refuse jobs without a name of their own (kUnnamedJob): those of two users would become one.
    // For a daemon that serves more than one job.
    bool names_required = false;
    // The incarnation of the first job; each further one has the next. No earlier life of this
    // daemon may have used it.
    Incarnation first_incarnation = 1;
    // Sent to agents (Welcome::durable).
    bool durable = false;
    SpokenVersions speaks{};
    // Minimum lease where a standby replaces a lost daemon: no agent may be given up during the
    // takeover. Keep-alives are as frequent as without it. Zero: no minimum.
    Duration shortest_lease = Duration::zero();
    // A similar minimum for large jobs on a durable daemon. After a restart the daemon hears agents
    // one after the other, and an agent not heard within its lease would kill its workers. This
    // much for each node that the job may have, but no more than the second value.
    Duration lease_per_node = std::chrono::milliseconds(6);
    Duration longest_lease_for_nodes = std::chrono::seconds(15);
    // How long an agent has to come back after its connection broke; at most a third of its lease.
    Duration reattach_grace = std::chrono::seconds(1);
    // How much longer than its lease an agent may take to come back to a daemon that was restarted.
    Duration restart_grace = std::chrono::seconds(5);
  };

  // torchrun's run id for jobs that were given none.
  static constexpr std::string_view kUnnamedJob = "none";

  Coordinator() : Coordinator(Options{}) {}
  explicit Coordinator(const Options& options)
      : options_(options),
        store_bytes_(options.store_bytes, options.all_store_bytes),
        jobs_(options.first_incarnation, options.max_ended_jobs, &from_jobs_, &store_bytes_) {}

  // An event from the agent on connection `agent`. The effect of each event is described where it
  // is defined (messages.h) and, as far as it concerns the job, in Job.
  void Hear(AgentId agent, const Event& event, TimePoint now);
  // The agent's connection is gone without a goodbye; `why` is the cause: "its connection ended".
  // The agent is lost unless it comes back in time; at once if it has no session.
  void Disconnected(AgentId agent, const std::string& why, TimePoint now);
  // The guard of this session's agent reports that the agent is dead and none of its workers are
  // left. The agent is lost at once, without waiting for its lease to end. No effect if no such
  // session attends.
  void AgentDied(const SessionToken& session, TimePoint now);

  // Refuses new agents from now on; jobs continue. For a daemon that is shutting down.
  void Drain(const std::string& why) { draining_ = why; }
  // Ends every job that has no verdict yet with kClosed.
  void Close(const std::string& why, TimePoint now);
  // True if no agent attends any job.
  bool idle() const { return session_table_.empty(); }
  int agent_count() const { return static_cast<int>(session_table_.size()); }
  int job_count() const { return static_cast<int>(jobs_.size()); }

  // Lets time pass. To be called at NextDeadline(). A late call means that this process was stalled
  // and could not receive: every lease starts over.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  Outbox TakeOutbox() { return std::exchange(outbox_, {}); }

  // The state of one job, or of all, including jobs that have ended (Jobs::Describe).
  std::optional<JobSnapshot> Describe(std::string_view run_id, TimePoint now) const {
    return jobs_.Describe(run_id, now);
  }
  std::vector<JobSnapshot> List(TimePoint now) const { return jobs_.Describe(now); }
  // The agents' leases, and how punctual the agents are.
  LeaseFigures Leases(TimePoint now) const { return session_table_.Figures(now); }
  // Bytes of worker output that log files did not take, over all jobs so far.
  std::uint64_t log_bytes_lost() const { return log_bytes_lost_; }

  // The job's store, or null if there is no such job. Valid until the job is forgotten, when its
  // last agent has left.
  KeyValueStore* FindStore(std::string_view run_id);

  // The job, or null; valid as long as the store.
  const Job* FindJob(std::string_view run_id) const { return jobs_.Find(run_id); }
  // The connection of that attendee; 0 if it is out of touch or no longer attends.
  AgentId ConnectionOf(AttendeeId attendee) {
    const SessionEntry* const agent_session = session_table_.Find(attendee);
    return agent_session == nullptr ? 0 : agent_session->agent;
  }

  // True even while it is out of touch.
  bool Attends(AttendeeId attendee) { return session_table_.Find(attendee) != nullptr; }

  // The job's record for a journal, also for a job that has ended. Apart from forgetting jobs, each
  // call changes only the records of the jobs in its Outbox's changed_jobs. nullopt: no such job.
  std::optional<JobRecord> Record(std::string_view run_id, TimePoint now) const;
  // Resumes a job that an earlier life of this daemon recorded. Its agents have their lease plus
  // `restart_grace` to come back, counted from BeginToServe: until then no agent can be heard and
  // nothing is due, however long the rest of the journal takes to read. Before any other call.
  // Returns false and changes nothing if a job of that name or an attendee of that number already
  // exists; records from a single journal never conflict.
  bool Restore(const JobRecord& record, TimePoint now);
  // Agents can reach this daemon from now on. Call once, after every Restore.
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

  // Why the request is refused, in one sentence; empty if it is not. `agent_session` is its
  // sender's, or null.
  Refused Objection(const SessionEntry* agent_session, const JoinRequest& request) const;
  // True if the life of the job in which the node ran workers is over.
  bool RanInAnEndedLife(const JoinRequest& request) const;
  // Sends the node the verdict of that life.
  void TellEnd(AgentId agent, const JoinRequest& request);
  // True if an abandoned job must end because its name is requested with other settings, in a
  // request to which there is no other objection.
  static bool GivesWay(const Job& job, const JoinRequest& request);
  // The attendee that has the exact rank this node asks for; nullopt: none.
  std::optional<AttendeeId> HolderOfRank(const JoinRequest& request) const;
  // Whether the rank's holder still exists is unknown until it is heard from again or lost; until
  // then the newcomer waits. The newcomer is refused at once if the holder cannot be lost.
  void ContestRank(AgentId agent, const JoinRequest& request, AttendeeId holder, TimePoint now);
  void RefuseRank(AgentId agent, const JoinRequest& request, AttendeeId holder, TimePoint now);
  // Handles newcomers whose contested holder is gone, or is known to be alive.
  void SettleContests(TimePoint now);
  // Turns away a node that reports itself unfit.
  void TurnAwayUnfit(AgentId agent, const JoinRequest& request, TimePoint now);
  SessionEntry& Open(AgentId agent, const JoinRequest& request, TimePoint now);
  // Null if the agent does not attend.
  SessionEntry* Find(AgentId agent) { return session_table_.FindByConnection(agent); }
  // Records a sign of life.
  void Renew(SessionEntry& agent_session, TimePoint now);
  // The session, with its lease renewed; null for an agent that does not attend.
  SessionEntry* FindAndRenew(AgentId agent, TimePoint now);
  // Takes the agent out of its job, and forgets the job if no node is left that may continue it.
  void Remove(SessionEntry& agent_session, const std::string& why, TimePoint now,
              TimePoint gone_by = TimePoint::min(), std::optional<Duration> silence = {});
  void EndLeases(TimePoint now);
  // `lost`: bytes of output, since the agent started, that its log files did not take.
  void CountLogBytes(SessionEntry& agent_session, std::uint64_t lost);
  void Tell(AgentId agent, Directive directive);
  // For a job with up to `max_nodes` nodes.
  Duration ShortestLease(int max_nodes) const;
  void TellWelcome(const SessionEntry& agent_session, const SpokenVersions& speaks);
  // Forwards the jobs' directives to their attendees' current connections.
  void Forward();

  const Options options_;
  Outbox outbox_;
  Outbox from_jobs_;  // its directives are addressed to attendees
  ByteBudget store_bytes_;
  Jobs jobs_;
  AttendeeId next_attendee_ = 1;
  SessionTable session_table_{options_.reattach_grace};
  EndedSessions ended_sessions_;
  RankContests contests_;
  bool is_deaf_ = false;  // something was restored, and agents cannot reach us yet
  std::string draining_;  // why, once Drain was called
  std::uint64_t log_bytes_lost_ = 0;
};

}  // namespace muster::rendezvous
