// Checks what a daemon that serves holds of each job: how that may change, what the nodes of a
// round are told, and what is shown of it.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/snapshot.h"
#include "test/rendezvous/cluster/checks/incidents.h"
#include "test/rendezvous/cluster/checks/violations.h"

namespace muster::rendezvous {

// Knows the rules for what comes out, not how Job and Round get there.
class JobChecks {
 public:
  JobChecks(Violations& violations, Incidents& incidents)
      : violations_(violations), incidents_(incidents) {}

  // A job has changed, or was restored. No `job`: it was forgotten.
  void OnChange(const std::string& run_id, const std::optional<JobRecord>& job);
  // An agent has said `event` over the newest connection of its session, which made the job `after`
  // of what it was before.
  void OnHeard(const SessionToken& session, const Event& event, const JobRecord& before,
               const std::optional<JobRecord>& after);
  // A node is told to start.
  void OnAssignment(const Assignment& assignment);
  // How a job is described at the moment at which it is this.
  void OnDescribed(const JobRecord& job, const JobSnapshot& snapshot);
  // A daemon starts from what was remembered.
  void OnRestart() { jobs_.clear(); }

 private:
  struct Known {
    JobRecord job;
    std::optional<RoundNumber> started;  // the last round
    std::size_t size = 0;                // of it
    // In it, by node id; of those that have attended ever since.
    std::map<std::string, int> ranks;
  };

  // What holds at any time, of a round that runs, and from one change to the next.
  void CheckState(const JobRecord& job);
  void CheckMembers(const JobRecord& job);
  void CheckStep(const JobRecord& before, const JobRecord& after);
  void CheckVerdict(const JobRecord& before, const JobRecord& after);
  void Start(Known& known);
  void Fail(Check check, const JobRecord& job, const std::string& what);

  Violations& violations_;
  Incidents& incidents_;
  std::map<std::string, Known> jobs_;
};

}  // namespace muster::rendezvous
