#include "rendezvous/core/job/ended_jobs.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::rendezvous {

std::optional<std::string> EndedJobs::Add(JobRecord ended, TimePoint workers_gone_by,
                                          TimePoint now) {
  const std::string run_id = ended.run_id;
  // When is not known of those in a journal of an older release: it was before all others.
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
    // A journal has them in any order: this one may have ended long before those.
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
  // The earliest of all times, that of a job which has lost nobody, has no distance from now.
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

}  // namespace muster::rendezvous
