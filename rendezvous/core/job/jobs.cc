#include "rendezvous/core/job/jobs.h"

#include <algorithm>
#include <utility>

#include "base/earliest.h"

namespace muster::rendezvous {

Job* Jobs::Find(std::string_view run_id) const {
  const auto found = jobs_.find(run_id);
  return found == jobs_.end() ? nullptr : found->second.get();
}

Job& Jobs::FindOrBegin(const std::string& run_id, const JobSettings& settings, TimePoint now) {
  std::unique_ptr<Job>& job = jobs_[run_id];
  if (job == nullptr) {
    job = std::make_unique<Job>(run_id, next_incarnation_++, settings, now, outbox_, store_bytes_);
    if (const auto gone_by = ended_.WorkersGoneBy(run_id)) job->HoldUntil(*gone_by, now);
  }
  return *job;
}

void Jobs::Forget(Job& job, TimePoint now) {
  job.Close("its last node has left", now);
  const std::string run_id = job.run_id();
  RememberEnd(job.RecordEnd(now), job.workers_gone_by(), now);
  outbox_->forgotten_jobs.push_back(run_id);
  outbox_->changed_jobs.insert(run_id);
  jobs_.erase(run_id);
}

void Jobs::RememberEnd(JobRecord ended, TimePoint workers_gone_by, TimePoint now) {
  const std::optional<std::string> oldest = ended_.Add(std::move(ended), workers_gone_by, now);
  // The journal has it under its name, unless that is another job's by now.
  if (oldest && !jobs_.contains(*oldest)) outbox_->forgotten_jobs.push_back(*oldest);
}

void Jobs::ForgetAbandoned(TimePoint now) {
  std::vector<Job*> over;
  for (auto& [run_id, job] : jobs_) {
    if (job->is_over()) over.push_back(job.get());
  }
  for (Job* const job : over) Forget(*job, now);
}

bool Jobs::IsOver(std::string_view run_id, Incarnation incarnation) const {
  const Job* const job = Find(run_id);
  return job == nullptr || job->incarnation() != incarnation;
}

void Jobs::Close(const std::string& why, TimePoint now) {
  for (auto& [run_id, job] : jobs_) job->Close(why, now);
}

void Jobs::Tick(TimePoint now) {
  for (auto& [run_id, job] : jobs_) job->Tick(now);
}

std::optional<TimePoint> Jobs::NextDeadline() const {
  std::optional<TimePoint> next;
  for (const auto& [run_id, job] : jobs_) {
    next = base::Earliest(next, job->NextDeadline());
  }
  return next;
}

std::vector<JobSnapshot> Jobs::Describe(TimePoint now) const {
  std::vector<JobSnapshot> snapshots;
  for (const auto& [run_id, job] : jobs_) snapshots.push_back(job->Describe(now));
  for (JobSnapshot& ended : ended_.Describe(now)) {
    if (!jobs_.contains(ended.run_id)) snapshots.push_back(std::move(ended));
  }
  return snapshots;
}

std::optional<JobSnapshot> Jobs::Describe(std::string_view run_id, TimePoint now) const {
  const Job* const job = Find(run_id);
  if (job == nullptr) return ended_.Describe(run_id, now);
  JobSnapshot snapshot = job->Describe(now);
  if (job->verdict()) snapshot.failure = job->verdict()->root_cause;
  return snapshot;
}

std::optional<JobRecord> Jobs::Record(std::string_view run_id, TimePoint now) const {
  const Job* const job = Find(run_id);
  return job == nullptr ? ended_.Record(run_id, now) : job->Record(now);
}

Job& Jobs::Restore(const JobRecord& record, TimePoint now) {
  NoIncarnationUpTo(record.incarnation);
  std::unique_ptr<Job>& job = jobs_[record.run_id];
  job = std::make_unique<Job>(record, now, outbox_, store_bytes_);
  return *job;
}

void Jobs::RestoreEnded(const JobRecord& record, TimePoint workers_gone_by, TimePoint now) {
  NoIncarnationUpTo(record.incarnation);
  RememberEnd(record, workers_gone_by, now);
}

void Jobs::BeginToServe(TimePoint now) {
  for (auto& [run_id, job] : jobs_) job->BeginToServe(now);
  ended_.BeginToServe(now);
}

void Jobs::NoIncarnationUpTo(Incarnation used) {
  next_incarnation_ = std::max(next_incarnation_, used + 1);
}

}  // namespace muster::rendezvous
