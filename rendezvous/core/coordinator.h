// The daemon's decisions about all its jobs: who attends, whose lease has run out, and which job an
// event belongs to. What happens inside a job, Job decides.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rendezvous/core/directive.h"
#include "rendezvous/core/ended_sessions.h"
#include "rendezvous/core/event.h"
#include "rendezvous/core/job.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Events go in by the calls below, each with the time; directives for agents and transitions for
// the log come out of TakeOutbox(), which the caller empties after every call. Same calls, same
// outcome: there is no clock, socket, thread or random number in here. Not thread-safe.
//
// An agent attends from its first accepted JoinRequest until its Goodbye or the end of its lease,
// or until it is told Refused or Evicted. Events of an agent that does not attend change nothing,
// so that a message that crosses one of these ends on its way does no harm.
//
// An attendance outlives its connection: when that breaks (Disconnected) the agent has
// `reattach_grace` to come back over another one (Resume), and is then told again what it has to
// do. It outlives the daemon, too, where the state is kept: Record() and Restore().
class Coordinator {
 public:
  struct Options {
    int max_jobs = 1024;
    int max_nodes_per_job = 100'000;
    // How many of the jobs that have ended are remembered, for those who come back.
    std::size_t max_ended_jobs = 1024;
    // Jobs without a name of their own (kUnnamedJob) are refused: two people's would be one. For a
    // daemon that is not the job's own.
    bool names_required = false;
    // The incarnation of the first job; each further one has the next. Must not have been used by
    // an earlier life of this daemon.
    Incarnation first_incarnation = 1;
    // What agents are told (Welcome::durable).
    bool durable = false;
    // How long an agent whose connection broke may take to come back, at most a third of its lease.
    Duration reattach_grace = std::chrono::seconds(1);
    // How much longer than its lease an agent may take to come back to a daemon that was restarted.
    Duration restart_grace = std::chrono::seconds(5);
  };

  // torchrun's run id of jobs that were given none.
  static constexpr std::string_view kUnnamedJob = "none";

  Coordinator() = default;
  explicit Coordinator(const Options& options)
      : options_(options), next_incarnation_(options.first_incarnation) {}

  // The agent says something over its connection `agent`. What each event brings about is told
  // where it is defined (event.h) and, for what is about its job, in Job.
  void Hear(AgentId agent, const Event& event, TimePoint now);
  // The agent's connection is gone without a goodbye; `why` is the cause, "its connection ended".
  // It is lost unless it comes back in time; at once if it has no session.
  void Disconnected(AgentId agent, const std::string& why, TimePoint now);
  // The agent of this session has died, and nothing of its workers runs any more: its guard says
  // so. It is lost at once, and nobody waits for the end of its lease. Nothing happens if no such
  // session attends.
  void AgentDied(const SessionToken& session, TimePoint now);

  // From now on agents that do not attend are refused; jobs go on. For a daemon that is to end.
  void Drain(const std::string& why);
  // Ends every job that has no verdict with kClosed.
  void Close(const std::string& why, TimePoint now);
  // No agent attends any job.
  bool idle() const { return attendances_.empty(); }
  int agent_count() const { return static_cast<int>(attendances_.size()); }
  int job_count() const { return static_cast<int>(jobs_.size()); }

  // Lets time pass. To be called at NextDeadline(); a call that comes late is taken for a halt of
  // this process, in which it was deaf: every lease starts anew.
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  Outbox TakeOutbox() { return std::exchange(outbox_, {}); }

  // The state of one job (nothing: there is no such job), or of all in order of run id.
  std::optional<JobSnapshot> Describe(std::string_view run_id, TimePoint now) const;
  std::vector<JobSnapshot> List(TimePoint now) const;

  // The job's store, or null without such a job. Valid until the job is forgotten: when its last
  // agent has left.
  KeyValueStore* FindStore(std::string_view run_id);

  // What a journal is to keep, also of a job that has ended. Each call changes, beside forgetting
  // jobs, only those that are among its Outbox' changed_jobs. Nothing: there is no such job.
  std::optional<JobRecord> Record(std::string_view run_id, TimePoint now) const;
  // Goes on with a job that was recorded by an earlier life of this daemon. Its agents have their
  // lease and `restart_grace` to come back. Before any other call.
  void Restore(const JobRecord& record, TimePoint now);

 private:
  struct Attendance {
    AttendeeId id = 0;
    Job* job = nullptr;
    std::string node_id;
    SessionToken session;
    Duration keep_alive{};
    Duration lease{};  // zero: none
    TimePoint lease_ends{};
    // When its workers are dead, whatever became of it.
    TimePoint gone_by{};
    std::uint64_t connection = 0;  // the greatest number it came with
    AgentId agent = 0;             // its connection; 0: none
    std::string disconnected{};    // why, when there is none
  };

  // One for each kind of event.
  void Handle(AgentId agent, const JoinRequest& request, TimePoint now);
  void Handle(AgentId agent, const Resume& resume, TimePoint now);
  void Handle(AgentId agent, const KeepAlive& beat, TimePoint now);
  void Handle(AgentId agent, const WorkersStarted& started, TimePoint now);
  void Handle(AgentId agent, const WorkersExited& exited, TimePoint now);
  void Handle(AgentId agent, const Leaving& leaving, TimePoint now);
  void Handle(AgentId agent, const Goodbye& goodbye, TimePoint now);

  // The sentence that refuses the request, or empty.
  std::string Objection(AgentId agent, const JoinRequest& request) const;
  // Tells a node whose life of the job is over how that one ended; false: it is not over.
  bool TellEnd(AgentId agent, const JoinRequest& request);
  // A job that nobody attends is over when its name is asked for with other settings, by somebody
  // who has no other objection to bear.
  static bool GivesWay(const Job& job, const JoinRequest& request);
  void GiveWay(const JoinRequest& request, TimePoint now);
  // The node asks for an exact rank that another one has. Whether that one is there is not known
  // before it is heard of again, or lost: until then the newcomer waits, and true is returned.
  bool AwaitHolder(AgentId agent, const JoinRequest& request, TimePoint now);
  // A beat may have been long on its way, and its sender be dead: only one that was sent after the
  // answer to an earlier one, heard in the contest, shows that a holder lives.
  void WitnessLife(AttendeeId holder, const KeepAlive& beat);
  // Goes on with newcomers whose holder is gone, or is known to live.
  void SettleContests(TimePoint now);
  // A node that must not take part says so.
  void TurnAwayUnfit(AgentId agent, const JoinRequest& request, TimePoint now);
  Attendance& Open(AgentId agent, const JoinRequest& request, TimePoint now);
  Attendance* Find(AgentId agent);
  // The attendance, its lease renewed; null for an agent that does not attend.
  Attendance* FindAndRenew(AgentId agent, TimePoint now);
  // The job is no more, nor its store; how it ended is remembered.
  void Forget(Job& job, TimePoint now);
  void RememberEnd(JobRecord ended, TimePoint workers_gone_by);
  void ForgetAbandoned(TimePoint now);
  // Takes the agent out of its job, and forgets the job if nobody is left who may go on with it.
  void Remove(Attendance& attendance, const std::string& why, TimePoint now,
              TimePoint gone_by = TimePoint::min());
  // When it is lost unless something is heard of it.
  void SetLease(Attendance& attendance, TimePoint ends);
  void RenewLease(Attendance& attendance, TimePoint now);
  // This process stood still and was deaf.
  void BearHalt(Attendance& attendance, TimePoint now);
  // How long it may take to come back over another connection.
  Duration ReattachGrace(const Attendance& attendance) const;
  void EndLeases(TimePoint now);
  void Tell(AgentId agent, Directive directive);
  // Passes on what the jobs have to say, to where their attendees are now.
  void Forward();

  const Options options_{};
  Outbox outbox_;
  Outbox from_jobs_;  // its directives are addressed to attendees
  Incarnation next_incarnation_ = 1;
  AttendeeId next_attendee_ = 1;
  std::map<std::string, std::unique_ptr<Job>, std::less<>> jobs_;
  std::map<AttendeeId, Attendance> attendances_;
  std::unordered_map<AgentId, AttendeeId> connections_;
  std::unordered_map<SessionToken, AttendeeId> sessions_;
  EndedSessions ended_sessions_;
  std::set<std::pair<TimePoint, AttendeeId>> leases_;
  // How the last job of a name that has ended did, and until when workers of it may run: another
  // job of the name waits for that. `number`: in which order they ended.
  struct EndedJob {
    JobRecord record;
    TimePoint workers_gone_by{};
    std::uint64_t number = 0;
  };
  std::map<std::string, EndedJob, std::less<>> ended_jobs_;
  std::map<std::uint64_t, std::string> ended_in_order_;
  std::uint64_t next_ended_ = 1;
  // Newcomers that ask for a rank which another node has (AwaitHolder), by their connection.
  struct Contest {
    JoinRequest request;
    AttendeeId holder = 0;
    // The first beat of the holder that was answered in the contest.
    std::optional<std::int64_t> answered{};
    bool holder_lives = false;
  };
  std::map<AgentId, Contest> contests_;
  std::string draining_;  // why, when Drain was called
};

}  // namespace muster::rendezvous
