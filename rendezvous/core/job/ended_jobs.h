// How the last job of each name ended, for those who come back to it too late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "rendezvous/core/record.h"
#include "rendezvous/core/types.h"

namespace muster::rendezvous {

// Part of a Coordinator, which owns it. Not thread-safe.
class EndedJobs {
 public:
  // Remembers that many at most.
  explicit EndedJobs(std::size_t capacity) : capacity_(capacity) {}

  // The job that has ended last under its name; workers of it may run until `workers_gone_by`, and
  // those of the one before as long as was said of that. Returns the name of the job that is
  // forgotten for it, if there is one: the one that ended first.
  std::optional<std::string> Add(JobRecord ended, TimePoint workers_gone_by);

  // How that life of the job ended; null: it is not, or not any more, known.
  const Verdict* FindVerdict(std::string_view run_id, Incarnation incarnation) const;

  // When no worker of the jobs of this name runs any more; nothing: no such job is known.
  std::optional<TimePoint> WorkersGoneBy(std::string_view run_id) const;

  // What a journal is to keep of it; nothing: no such job is known.
  std::optional<JobRecord> Record(std::string_view run_id, TimePoint now) const;

 private:
  struct Ended {
    JobRecord record;
    TimePoint workers_gone_by{};
    std::uint64_t number = 0;  // in which order they ended
  };

  const std::size_t capacity_;
  std::map<std::string, Ended, std::less<>> jobs_;
  std::map<std::uint64_t, std::string> in_order_;
  std::uint64_t next_number_ = 1;
};

}  // namespace muster::rendezvous
