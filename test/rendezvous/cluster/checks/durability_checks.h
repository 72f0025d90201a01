// Whether what is told is on the disk at that instant, and whether a daemon that was restarted
// knows what had been written.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/core/directive.h"
#include "rendezvous/core/record.h"
#include "test/rendezvous/cluster/checks/violations.h"
#include "test/rendezvous/cluster/disk.h"

namespace muster::rendezvous {

class DurabilityChecks {
 public:
  DurabilityChecks(Violations& violations, const Disk& disk)
      : violations_(violations), disk_(disk) {}

  // The daemon thinks so of a job now, whether or not it is on the disk.
  void OnDecided(const JobRecord& record);
  // A job's state has become durable (see Disk::on_durable).
  void OnDurable(const std::string& run_id, const JobRecord* record);
  // A daemon tells something to an agent that attends, or did, `run_id` by `session`; `now` is what
  // it thinks of the job by now.
  void OnTold(const std::string& run_id, const SessionToken& session,
              const std::optional<JobRecord>& now, const Directive& directive);
  // A daemon acknowledges that the key has this value, or has none.
  void OnAcknowledged(const std::string& run_id, Incarnation incarnation,
                      const std::optional<JobRecord>& now, const std::string& key,
                      const std::string& value);
  // A daemon has restored the job that was written as `written` and is now `restored`.
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
