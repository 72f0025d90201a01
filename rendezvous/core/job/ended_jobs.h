// How the last job of each name ended, for nodes that come back to it too late.
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
  // Remembers at most `capacity` jobs.
  explicit EndedJobs(std::size_t capacity) : capacity_(capacity) {}

  // The latest job to end under its name. Its workers may run until `workers_gone_by`, and those of
  // the job before it as long as was said then. Returns the name of the job that is forgotten in
  // its place, if any: the one that ended first.
  std::optional<std::string> Add(JobRecord ended, TimePoint workers_gone_by);

  // How that life of the job ended; null: that is not known, or no longer.
  const Verdict* FindVerdict(std::string_view run_id, Incarnation incarnation) const;

  // When no worker of the jobs of this name can be running any more; nullopt: no such job is known.
  std::optional<TimePoint> WorkersGoneBy(std::string_view run_id) const;

  // What a journal is to keep of it; nullopt: no such job is known.
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
