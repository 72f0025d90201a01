// What `muster status` prints of jobs: for people the tables of rendezvous/pages/job_view.h, for
// programs JSON. Lines, each with its end.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

#include "rendezvous/core/values/snapshot.h"

namespace muster::launcher {

// A JSON array with an object for each job. A missing rank is null. Bytes that are not UTF-8 become
// U+FFFD.
std::string JobsJson(const std::vector<rendezvous::JobSnapshot>& jobs);

// All that there is to show of one job: its tables one after the other, and its first failure, with
// times in `zone`.
std::string JobText(const rendezvous::JobSnapshot& job, absl::TimeZone zone);

// What --watch prints of an update.

// For people: the table of all jobs and what has ended since the last update; or, of the only job
// that is watched, JobText().
std::string WatchText(const rendezvous::WatchedJobs& watched, bool of_one_job, absl::TimeZone zone);

// For programs: an object in one line, {"jobs": [...], "ended": [...]}. A job is as in JobsJson;
// one that has ended is {"run_id": ..., "outcome": ..., "message": ...}.
std::string WatchJson(const rendezvous::WatchedJobs& watched);

}  // namespace muster::launcher
