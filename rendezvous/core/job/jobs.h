// All jobs of a daemon: those that a node attends or may come back to, and how earlier ones ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/core/job/job.h"
#include "rendezvous/core/values/limits.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/quotas.h"
#include "rendezvous/core/values/record.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/core/values/types.h"

namespace muster::rendezvous {

// How the last job of each name ended: for nodes that come back too late, and for display. Part of
// a Coordinator, which owns it. Not thread-safe.
class EndedJobs {
 public:
  // Remembers at most `capacity` jobs.
  explicit EndedJobs(std::size_t capacity) : capacity_(capacity) {}

  // Adds the latest job to end under its name. Its workers may run until `workers_gone_by`, and
  // those of the job before it until the time given for that one. Returns the name of the job
  // dropped to make room, if any: the one that ended first.
  std::optional<std::string> Add(JobRecord ended, TimePoint workers_gone_by, TimePoint now);

  // Agents can reach this daemon from now on. Workers of a recorded job may run for as long from
  // now as was given when it was added.
  void BeginToServe(TimePoint now);

  // How that life of the job ended; null: unknown, or forgotten.
  const Verdict* FindVerdict(std::string_view run_id, Incarnation incarnation) const;

  // When all workers of the jobs of this name are certainly dead; nullopt: no such job is known.
  std::optional<TimePoint> WorkersGoneBy(std::string_view run_id) const;

  // Its record for a journal; nullopt: no such job is known.
  std::optional<JobRecord> Record(std::string_view run_id, TimePoint now) const;

  // The last kShown, latest first, without their failures: a list of jobs should not carry their
  // stderr output.
  std::vector<JobSnapshot> Describe(TimePoint now) const;
  // Any known job, with its failure; nullopt: not known.
  std::optional<JobSnapshot> Describe(std::string_view run_id, TimePoint now) const;

  // Of the others, which only returning nodes ask for, the rounds are not kept either.
  static constexpr std::size_t kShown = limits::kEndedJobsShown.most;

 private:
  // When it ended, and a unique number.
  using Place = std::pair<TimePoint, std::uint64_t>;

  struct Ended {
    JobRecord record;
    TimePoint workers_gone_by{};
    TimePoint recorded;  // the time `record` was made
    Place place;
  };

  static HistorySnapshot History(const Ended& ended, TimePoint now);
  static JobSnapshot Snapshot(const Ended& ended, TimePoint now);

  const std::size_t capacity_;
  std::map<std::string, Ended, std::less<>> jobs_;
  std::map<Place, std::string> in_order_;  // earliest end first
  std::uint64_t next_number_ = 1;
};

// A job begins when its name is first requested, and is forgotten, with its store, when its last
// agent has left; then another job may use the name. Part of a Coordinator, which owns it and knows
// the agents. Not thread-safe.
class Jobs {
 public:
  // The first job that begins has the incarnation `first`, each further one the next. At most
  // `max_ended` ended jobs are remembered. `outbox`, whose directives are addressed to attendees,
  // and `store_bytes`, which the jobs' stores share, must outlive this. Every call adds to
  // `outbox`.
  Jobs(Incarnation first, std::size_t max_ended, Outbox* outbox, ByteBudget* store_bytes)
      : next_incarnation_(first), ended_(max_ended), outbox_(outbox), store_bytes_(store_bytes) {}

  // The job of that name, or null.
  Job* Find(std::string_view run_id) const;
  // Begins one if there is none.
  Job& FindOrBegin(const std::string& run_id, const JobSettings& settings, TimePoint now);
  // Removes the job and its store, and remembers how it ended. A job without a verdict ends now.
  void Forget(Job& job, TimePoint now);
  // Forgets the jobs that no node attends or may come back to.
  void ForgetAbandoned(TimePoint now);

  // True if that life of the job has ended, or never existed.
  bool IsOver(std::string_view run_id, Incarnation incarnation) const;
  // How it ended; null: unknown, or forgotten.
  const Verdict* FindVerdict(std::string_view run_id, Incarnation incarnation) const {
    return ended_.FindVerdict(run_id, incarnation);
  }

  // Ends all of them, with kClosed.
  void Close(const std::string& why, TimePoint now) {
    for (auto& [run_id, job] : jobs_) job->Close(why, now);
  }
  void Tick(TimePoint now) {
    for (auto& [run_id, job] : jobs_) job->Tick(now);
  }
  std::optional<TimePoint> NextDeadline() const;

  std::size_t size() const { return jobs_.size(); }
  // Current jobs in natural order of run id (job2 before job10), then the last that ended, latest
  // first.
  std::vector<JobSnapshot> Describe(TimePoint now) const;
  // The current job of that name, else the one that has ended, with its failure. nullopt: neither
  // is known.
  std::optional<JobSnapshot> Describe(std::string_view run_id, TimePoint now) const;

  // Its record for a journal, also if it has ended, without sessions and leases. nullopt: no such
  // job.
  std::optional<JobRecord> Record(std::string_view run_id, TimePoint now) const;
  // Resumes a recorded job, as if no time had passed since.
  Job& Restore(const JobRecord& record, TimePoint now);
  // Remembers a recorded job that had ended; its workers may run until `workers_gone_by`.
  void RestoreEnded(const JobRecord& record, TimePoint workers_gone_by, TimePoint now);
  // Agents can reach this daemon from now on. Call it while all jobs are recorded ones.
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
