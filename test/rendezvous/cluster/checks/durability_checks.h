// Checks that whatever the daemon says is on the disk at that instant, and that a restarted daemon
// knows what was written.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/record.h"
#include "test/rendezvous/cluster/checks/violations.h"
#include "test/rendezvous/cluster/disk.h"

namespace muster::rendezvous {

class DurabilityChecks {
 public:
  DurabilityChecks(Violations& violations, const Disk& disk)
      : violations_(violations), disk_(disk) {}

  // The daemon's current state of a job, whether or not it is on the disk.
  void OnDecided(const JobRecord& record);
  // A job's state has become durable (see Disk::on_durable).
  void OnDurable(const std::string& run_id, const JobRecord* record);
  // A daemon tells `directive` to an agent that attends or attended `run_id` with `session`. `now`
  // is its current state of the job.
  void OnTold(const std::string& run_id, const SessionToken& session,
              const std::optional<JobRecord>& now, const Directive& directive);
  // A daemon acknowledges that the key has this value, or that it has none.
  void OnAcknowledged(const std::string& run_id, Incarnation incarnation,
                      const std::optional<JobRecord>& now, const std::string& key,
                      const std::string& value);
  // A daemon has restored a job that was written as `written`, and its state is now `restored`.
  void OnRestored(const JobRecord& written, const std::optional<JobRecord>& restored);

 private:
  struct JobHistory {
    // What has been on the disk at some time.
    RoundId newest;
    std::map<Incarnation, Verdict> ended;
    std::map<Incarnation, Verdict> decided;

    bool MayTell(const Verdict& verdict) const;
  };

  Violations& violations_;
  const Disk& disk_;
  std::map<std::string, JobHistory> history_;
};

}  // namespace muster::rendezvous
