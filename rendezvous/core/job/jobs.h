// All jobs of a daemon: those that some node attends or may come back to, and how others ended.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/core/byte_budget.h"
#include "rendezvous/core/directive.h"
#include "rendezvous/core/job/ended_jobs.h"
#include "rendezvous/core/job/job.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// A job begins when its name is first asked for, and is forgotten, with its store, when its last
// agent has left; then another may have the name. Part of a Coordinator, which owns it and knows
// the agents. Not thread-safe.
class Jobs {
 public:
  // The first job that begins has the incarnation `first`, each further one the next. At most
  // `max_ended` ended jobs are remembered. `outbox`, in which directives are addressed to
  // attendees, must outlive this; every call adds to it. So must `store_bytes`, which the jobs'
  // stores share.
  Jobs(Incarnation first, std::size_t max_ended, Outbox* outbox, ByteBudget* store_bytes)
      : next_incarnation_(first), ended_(max_ended), outbox_(outbox), store_bytes_(store_bytes) {}

  // The job of that name, or null.
  Job* Find(std::string_view run_id) const;
  // Begins one if there is none.
  Job& FindOrBegin(const std::string& run_id, const JobSettings& settings, TimePoint now);
  // Removes the job and its store; how it ended is remembered. If it has not ended yet, it ends
  // now.
  void Forget(Job& job, TimePoint now);
  // Forgets the jobs that nobody attends or will come back to.
  void ForgetAbandoned(TimePoint now);

  // That life of the job has ended, or never existed.
  bool IsOver(std::string_view run_id, Incarnation incarnation) const;
  // How it ended; null: that is not known, or no longer.
  const Verdict* FindVerdict(std::string_view run_id, Incarnation incarnation) const {
    return ended_.FindVerdict(run_id, incarnation);
  }

  // Ends all of them, with kClosed.
  void Close(const std::string& why, TimePoint now);
  void Tick(TimePoint now);
  std::optional<TimePoint> NextDeadline() const;

  std::size_t size() const { return jobs_.size(); }
  // Those that are there in order of run id, then the last that have ended, the latest first.
  std::vector<JobSnapshot> Describe(TimePoint now) const;
  // The one of that name that is there, else the one that has ended, with its failure. nullopt:
  // neither is known.
  std::optional<JobSnapshot> Describe(std::string_view run_id, TimePoint now) const;

  // What a journal is to keep of a job, even of one that has ended, without sessions and leases.
  // nullopt: there is no such job.
  std::optional<JobRecord> Record(std::string_view run_id, TimePoint now) const;
  // Resumes a recorded job, as if no time had passed since.
  Job& Restore(const JobRecord& record, TimePoint now);
  // Remembers a job that had ended; its workers may run until `workers_gone_by`.
  void RestoreEnded(const JobRecord& record, TimePoint workers_gone_by, TimePoint now);
  // Agents can reach this daemon from now on. All jobs there are were recorded.
  void BeginToServe(TimePoint now);

 private:
  void NoIncarnationUpTo(Incarnation used);
  void RememberEnd(JobRecord ended, TimePoint workers_gone_by, TimePoint now);

  Incarnation next_incarnation_;
  std::map<std::string, std::unique_ptr<Job>, std::less<>> jobs_;
  EndedJobs ended_;
  Outbox* const outbox_;
  ByteBudget* const store_bytes_;
};

}  // namespace muster::rendezvous
