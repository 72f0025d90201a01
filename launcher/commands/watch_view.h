// What `muster status --watch` prints of an update.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rendezvous/client/watched_jobs.h"

namespace muster::launcher {

// For people: the table of all jobs and what has ended since the last update; or, of the only job
// that is watched, what `muster status --rdzv-id` prints (job_text.h). Lines, each with its end.
std::string WatchText(const rendezvous::WatchedJobs& watched, bool of_one_job, absl::TimeZone zone);

// For programs: an object in one line, {"jobs": [...], "ended": [...]}. A job is as in JobsJson;
// one that has ended is {"run_id": ..., "outcome": ..., "message": ...}.
std::string WatchJson(const rendezvous::WatchedJobs& watched);

// A text in the place of the one before on a terminal, whatever that is: how it is drawn. The
// cursor stays in the line below.
class Redrawing {
 public:
  struct Size {
    int columns = 80;
    int rows = 24;
  };

  // The bytes to write to a terminal of this size. Lines that are too long are cut; of those that
  // are too many the first are shown, and how many more there are.
  std::string Draw(const std::string& text, const Size& size);

 private:
  int drawn_ = 0;
  int columns_ = 0;
};

}  // namespace muster::launcher
