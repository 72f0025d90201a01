#include "rendezvous/core/job/jobs.h"

#include <algorithm>
#include <iterator>

#include "base/durations.h"
#include "base/text.h"

namespace muster::rendezvous {

std::optional<std::string> EndedJobs::Add(JobRecord ended, TimePoint workers_gone_by,
                                          TimePoint now) {
  const std::string run_id = ended.run_id;
  // Journals of older releases do not say when: before all others, then.
  const TimePoint at = ended.history.ended_ago ? now - *ended.history.ended_ago : TimePoint::min();
  if (const auto last = jobs_.find(run_id); last != jobs_.end()) {
    in_order_.erase(last->second.place);
    workers_gone_by = std::max(workers_gone_by, last->second.workers_gone_by);
  }
  const Place place{at, next_number_++};
  in_order_[place] = run_id;
  jobs_[run_id] = {std::move(ended), workers_gone_by, now, place};
  if (in_order_.size() > kShown) {
    const auto first_shown = std::prev(in_order_.end(), kShown);
    jobs_[std::prev(first_shown)->second].record.history.rounds.clear();
    // A journal lists jobs in any order: this one may have ended long before the shown ones.
    if (place < first_shown->first) jobs_[run_id].record.history.rounds.clear();
  }
  if (jobs_.size() <= capacity_) return std::nullopt;
  std::string oldest = in_order_.extract(in_order_.begin()).mapped();
  jobs_.erase(oldest);
  return oldest;
}

void EndedJobs::BeginToServe(TimePoint now) {
  for (auto& [run_id, ended] : jobs_) {
    if (ended.workers_gone_by > ended.recorded) ended.workers_gone_by += now - ended.recorded;
  }
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
  record.history = History(ended->second, now);
  // A job that has lost no node has the earliest of all times, from which `now` cannot be
  // subtracted.
  const TimePoint gone_by = ended->second.workers_gone_by;
  record.workers_gone_in = gone_by > now ? gone_by - now : Duration::zero();
  return record;
}

std::vector<JobSnapshot> EndedJobs::Describe(TimePoint now) const {
  std::vector<JobSnapshot> snapshots;
  for (auto each = in_order_.rbegin(); each != in_order_.rend() && snapshots.size() < kShown;
       ++each) {
    snapshots.push_back(Snapshot(jobs_.at(each->second), now));
  }
  return snapshots;
}

std::optional<JobSnapshot> EndedJobs::Describe(std::string_view run_id, TimePoint now) const {
  const auto ended = jobs_.find(run_id);
  if (ended == jobs_.end()) return std::nullopt;
  JobSnapshot snapshot = Snapshot(ended->second, now);
  snapshot.failure = ended->second.record.verdict->root_cause;
  return snapshot;
}

HistorySnapshot EndedJobs::History(const Ended& ended, TimePoint now) {
  HistorySnapshot history = ended.record.history;
  history.Pass(now - ended.recorded);
  return history;
}

JobSnapshot EndedJobs::Snapshot(const Ended& ended, TimePoint now) {
  const Verdict& verdict = *ended.record.verdict;
  JobSnapshot snapshot{.run_id = ended.record.run_id,
                       .state = JobState::kEnded,
                       .round = std::max(0, verdict.rounds - 1),
                       .sentence = verdict.sentence,
                       .settings = ended.record.settings,
                       .restart_count = verdict.restarts,
                       .outcome = verdict.kind};
  snapshot.SetHistory(History(ended, now));
  if (!snapshot.rounds.empty()) snapshot.round = snapshot.rounds.back().number;
  return snapshot;
}

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
  // Removes it from the journal, unless another job has that name by now.
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

std::optional<TimePoint> Jobs::NextDeadline() const {
  std::optional<TimePoint> next;
  for (const auto& [run_id, job] : jobs_) {
    next = base::Earliest(next, job->NextDeadline());
  }
  return next;
}

std::vector<JobSnapshot> Jobs::Describe(TimePoint now) const {
  std::vector<JobSnapshot> snapshots;
  std::vector<std::pair<std::string, const Job*>> order;
  for (const auto& [run_id, job] : jobs_) {
    order.emplace_back("", job.get());
    base::AppendNatural(run_id, &order.back().first);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [key, job] : order) snapshots.push_back(job->Describe(now));
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
