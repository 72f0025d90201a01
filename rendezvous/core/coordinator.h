// The daemon's decisions about all its jobs: who attends, whose lease has run out, and which job an
// event belongs to. What happens inside a job, Job decides.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/core/directive.h"
#include "rendezvous/core/job.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Events go in by the calls below, each with the time; directives for agents and transitions for
// the log come out of TakeOutbox(), which the caller empties after every call. Same calls, same
// outcome: there is no clock, socket, thread or random number in here. Not thread-safe.
//
// An agent attends from its first accepted Join until Leave, Lost or the end of its lease, or until
// it is told Refused. Calls that name an agent which does not attend change nothing, so that a
// message that crosses one of these ends on its way does no harm.
class Coordinator {
 public:
  struct Limits {
    int max_jobs = 1024;
    int max_nodes_per_job = 100'000;
  };

  Coordinator() = default;
  explicit Coordinator(const Limits& limits) : limits_(limits) {}

  // A node asks for a place: opens the attendance (answered Welcome or Refused), or asks for the
  // round after the one that it was told to stop.
  void Join(AgentId agent, const JoinRequest& request, TimePoint now);

  // A sign of life. Every other event of an agent is one, too.
  void KeepAlive(AgentId agent, TimePoint now);

  // See Job.
  void WorkersStarted(AgentId agent, RoundNumber round, TimePoint now);
  void WorkersExited(AgentId agent, RoundNumber round, const WorkersOutcome& outcome,
                     TimePoint now);
  void Leaving(AgentId agent, const std::string& reason, TimePoint now);

  // The agent said goodbye; an empty reason needs no telling.
  void Leave(AgentId agent, const std::string& reason, TimePoint now);
  // The agent is gone without a goodbye; `why` is the cause, "its stream ended".
  void Lost(AgentId agent, const std::string& why, TimePoint now);

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

 private:
  struct Attendance {
    Job* job = nullptr;
    std::string node_id;
    Duration lease{};  // zero: none
    TimePoint lease_ends{};
  };

  // The sentence that refuses the request, or empty.
  std::string Objection(AgentId agent, const JoinRequest& request) const;
  // The attendance, its lease renewed; null for an agent that does not attend.
  Attendance* Hear(AgentId agent, TimePoint now);
  // Takes the agent out of its job, and forgets the job if it was the last.
  void Remove(AgentId agent, const std::string& why, TimePoint now);
  void RenewLease(AgentId agent, Attendance& attendance, TimePoint now);

  const Limits limits_{};
  Outbox outbox_;
  std::map<std::string, std::unique_ptr<Job>, std::less<>> jobs_;
  std::map<AgentId, Attendance> attendances_;
  std::set<std::pair<TimePoint, AgentId>> leases_;
  std::string draining_;  // why, when Drain was called
};

}  // namespace muster::rendezvous
