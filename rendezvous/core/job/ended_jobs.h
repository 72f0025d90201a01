// How the last job of each name ended: for nodes that come back to it too late, and for those who
// look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rendezvous/core/limits.h"
#include "rendezvous/core/record.h"
#include "rendezvous/core/snapshot.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Part of a Coordinator, which owns it. Not thread-safe.
class EndedJobs {
 public:
  // Remembers at most `capacity` jobs.
  explicit EndedJobs(std::size_t capacity) : capacity_(capacity) {}

  // The latest job to end under its name. Its workers may run until `workers_gone_by`, and those of
  // the job before it as long as was said then. Returns the name of the job that is forgotten in
  // its place, if any: the one that ended first.
  std::optional<std::string> Add(JobRecord ended, TimePoint workers_gone_by, TimePoint now);

  // Agents can reach this daemon from now on. Workers of a job that was recorded may run for as
  // long as was said when it was added.
  void BeginToServe(TimePoint now);

  // How that life of the job ended; null: that is not known, or no longer.
  const Verdict* FindVerdict(std::string_view run_id, Incarnation incarnation) const;

  // When no worker of the jobs of this name can be running any more; nullopt: no such job is known.
  std::optional<TimePoint> WorkersGoneBy(std::string_view run_id) const;

  // What a journal is to keep of it; nullopt: no such job is known.
  std::optional<JobRecord> Record(std::string_view run_id, TimePoint now) const;

  // The last kShown, the latest first, without their failures: a list of jobs is not to cost what
  // they wrote to stderr.
  std::vector<JobSnapshot> Describe(TimePoint now) const;
  // Any one that is known, with its failure; nullopt: no such job is.
  std::optional<JobSnapshot> Describe(std::string_view run_id, TimePoint now) const;

  // Of the others, which only nodes that come back ask for, the rounds are not kept either.
  static constexpr std::size_t kShown = limits::kEndedJobsShown.most;

 private:
  // When it ended, and a number that no other has.
  using Place = std::pair<TimePoint, std::uint64_t>;

  struct Ended {
    JobRecord record;
    TimePoint workers_gone_by{};
    TimePoint recorded;  // the moment that `record` is of
    Place place;
  };

  static HistorySnapshot History(const Ended& ended, TimePoint now);
  static JobSnapshot Snapshot(const Ended& ended, TimePoint now);

  const std::size_t capacity_;
  std::map<std::string, Ended, std::less<>> jobs_;
  std::map<Place, std::string> in_order_;  // the one that ended first is first
  std::uint64_t next_number_ = 1;
};

}  // namespace muster::rendezvous
