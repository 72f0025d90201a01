#include "rendezvous/core/job/ended_jobs.h"

#include <algorithm>
#include <utility>

namespace muster::rendezvous {

std::optional<std::string> EndedJobs::Add(JobRecord ended, TimePoint workers_gone_by) {
  const std::string run_id = ended.run_id;
  if (const auto last = jobs_.find(run_id); last != jobs_.end()) {
    in_order_.erase(last->second.number);
    workers_gone_by = std::max(workers_gone_by, last->second.workers_gone_by);
  }
  const std::uint64_t number = next_number_++;
  in_order_[number] = run_id;
  jobs_[run_id] = {std::move(ended), workers_gone_by, number};
  if (jobs_.size() <= capacity_) return std::nullopt;
  std::string oldest = in_order_.extract(in_order_.begin()).mapped();
  jobs_.erase(oldest);
  return oldest;
}

const Verdict* EndedJobs::FindVerdict(std::string_view run_id, Incarnation incarnation) const {
  const auto ended = jobs_.find(run_id);
  if (ended == jobs_.end() || ended->second.record.incarnation != incarnation) return nullptr;
  return &*ended->second.record.verdict;
}

std::optional<TimePoint> EndedJobs::WorkersGoneBy(std::string_view run_id) const {
  const auto ended = jobs_.find(run_id);
  if (ended == jobs_.end()) return std::nullopt;
  return ended->second.workers_gone_by;
}

std::optional<JobRecord> EndedJobs::Record(std::string_view run_id, TimePoint now) const {
  const auto ended = jobs_.find(run_id);
  if (ended == jobs_.end()) return std::nullopt;
  JobRecord record = ended->second.record;
  // The earliest of all times, that of a job which has lost nobody, has no distance from now.
  const TimePoint gone_by = ended->second.workers_gone_by;
  record.workers_gone_in = gone_by > now ? gone_by - now : Duration::zero();
  return record;
}

}  // namespace muster::rendezvous
