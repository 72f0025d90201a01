#include "launcher/top/state.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "launcher/top/view.h"

namespace muster::launcher {
namespace {

using rendezvous::Duration;
using rendezvous::JobEnd;
using rendezvous::JobSnapshot;
using rendezvous::JobState;
using rendezvous::TimePoint;
using rendezvous::WatchedJobs;

constexpr char kNotKnown[] =
    "the rendezvous no longer knows this job, and has not said how it ended";

const JobSnapshot* Find(const std::vector<JobSnapshot>& jobs, const std::string& run_id) {
  const auto job = std::find_if(jobs.begin(), jobs.end(),
                                [&run_id](const JobSnapshot& job) { return job.run_id == run_id; });
  return job == jobs.end() ? nullptr : &*job;
}

void Forget(std::vector<JobSnapshot>& jobs, const std::string& run_id) {
  jobs.erase(std::remove_if(jobs.begin(), jobs.end(),
                            [&run_id](const JobSnapshot& job) { return job.run_id == run_id; }),
             jobs.end());
}

void KeepPast(TopState& state, JobSnapshot job) {
  Forget(state.past, job.run_id);
  if (state.past.size() >= TopState::kMostPast) state.past.erase(state.past.begin());
  job.state = JobState::kEnded;
  state.past.push_back(std::move(job));
}

// Keeps the last known state of jobs that are gone.
void KeepWhatIsGone(TopState& state, const WatchedJobs& watched, TimePoint now) {
  for (const JobEnd& end : watched.ended) {
    if (Find(watched.jobs, end.run_id) != nullptr) continue;
    const JobSnapshot* const seen = Find(state.jobs, end.run_id);
    JobSnapshot job = seen == nullptr ? JobSnapshot{.run_id = end.run_id} : AsOf(state, *seen, now);
    job.sentence = end.sentence;
    job.outcome = end.kind;
    // They were seen a moment before.
    if (end.kind == rendezvous::VerdictKind::kSucceeded) {
      for (auto& node : job.nodes) {
        if (node.group_rank >= 0) node.state = rendezvous::NodeState::kSucceeded;
      }
    }
    KeepPast(state, std::move(job));
    Forget(state.jobs, end.run_id);
  }
  for (const JobSnapshot& job : state.jobs) {
    if (Find(watched.jobs, job.run_id) != nullptr) continue;
    // The rendezvous reports only the watched job.
    if (!state.watched.empty() && job.run_id != state.watched) continue;
    JobSnapshot last = AsOf(state, job, now);
    if (job.state != JobState::kEnded) last.sentence = kNotKnown;
    KeepPast(state, std::move(last));
  }
}

void BeginReading(TopState& state, int rank) {
  state.log =
      RankLog{.run_id = state.run_id, .rank = rank, .of_round_before = state.of_round_before};
  state.log_top.reset();
  ++state.readings;
}

// Whether reading again may bring more, now that the rendezvous is reachable.
bool MayReadAgain(const TopState& state, const JobSnapshot* before, const JobSnapshot* now) {
  if (!state.log || now == nullptr || now->state == JobState::kEnded) return false;
  const bool has_begun_anew = before == nullptr || before->state == JobState::kEnded;
  const bool has_changed =
      has_begun_anew || before->state != now->state || before->round != now->round;
  switch (state.log->end) {
    case RankLog::End::kNotYet:
      return false;
    case RankLog::End::kAllTold:
      // Each new round changes which round is the previous one.
      return state.log->of_round_before ? has_changed : has_begun_anew;
    case RankLog::End::kFailed:
      return has_changed;
    case RankLog::End::kCutOff:
      return true;
  }
  return false;
}

}  // namespace

TopState BeginTop(const std::string& endpoint, const std::string& run_id) {
  return {.endpoint = endpoint,
          .watched = run_id,
          .place = run_id.empty() ? TopState::Place::kJobs : TopState::Place::kJob,
          .run_id = run_id};
}

void OnJobs(TopState& state, const WatchedJobs& watched, TimePoint now) {
  const bool may_read_again =
      MayReadAgain(state, ChosenJob(state), Find(watched.jobs, state.run_id));
  KeepWhatIsGone(state, watched, now);
  for (const JobSnapshot& job : watched.jobs) Forget(state.past, job.run_id);
  state.jobs = watched.jobs;
  state.received = now;
  state.is_known = true;
  state.trouble.clear();
  // Selects the first job if none is selected.
  if (ChosenJob(state) == nullptr && state.place == TopState::Place::kJobs) {
    const auto jobs = JobsOf(state);
    state.run_id = jobs.empty() ? "" : jobs.front()->run_id;
  }
  if (may_read_again) state.log.reset();
  FollowChoice(state);
}

void OnLog(TopState& state, int reading, const rendezvous::LogPart& part) {
  if (state.log && reading == state.readings) OnLogPart(*state.log, part);
}

void OnLogAway(TopState& state, int reading, const std::string& why) {
  if (state.log && reading == state.readings) OnLogOutage(*state.log, why);
}

void OnLogOver(TopState& state, int reading, const absl::Status& status) {
  if (state.log && reading == state.readings) OnLogEnd(*state.log, status);
}

void FollowChoice(TopState& state) {
  const JobSnapshot* const job = ChosenJob(state);
  const bool is_shown =
      state.place != TopState::Place::kJobs && state.pane == TopState::Pane::kOutput;
  if (!is_shown || job == nullptr) return state.log.reset();
  std::optional<int> rank = RankOfCell(*job, state.cell);
  // Between two rounds no cell has a rank; keep reading the last one.
  if (!rank && state.log) rank = state.log->rank;
  if (!rank) return;
  const bool is_read = state.log && state.log->run_id == job->run_id && state.log->rank == *rank &&
                       state.log->of_round_before == state.of_round_before;
  if (!is_read) BeginReading(state, *rank);
}

void OnOutOfTouch(TopState& state, const std::string& why, TimePoint now) {
  if (state.trouble.empty()) state.lost = now;
  state.trouble = why;
}

std::vector<const JobSnapshot*> JobsOf(const TopState& state) {
  std::vector<const JobSnapshot*> jobs;
  for (const JobSnapshot& job : state.jobs) jobs.push_back(&job);
  for (auto job = state.past.rbegin(); job != state.past.rend(); ++job) jobs.push_back(&*job);
  return jobs;
}

const JobSnapshot* ChosenJob(const TopState& state) {
  const JobSnapshot* const job = Find(state.jobs, state.run_id);
  return job != nullptr ? job : Find(state.past, state.run_id);
}

JobSnapshot AsOf(const TopState& state, const JobSnapshot& job, TimePoint now) {
  JobSnapshot aged = job;
  if (job.state == JobState::kEnded) return aged;
  const Duration passed = (state.trouble.empty() ? now : state.lost) - state.received;
  aged.age += passed;
  for (rendezvous::RoundSnapshot& round : aged.rounds) {
    round.opened_ago += passed;
    if (round.gathered && !round.end) round.ran += passed;
  }
  for (rendezvous::NodeSnapshot& node : aged.nodes) {
    if (node.state_ago) *node.state_ago += passed;
    for (rendezvous::RankAlertSnapshot& alert : node.alerts) alert.told.ago += passed;
    for (rendezvous::RankSnapshot& rank : node.ranks) {
      rank.told.ago += passed;
      if (rank.straggling) rank.straggling->age += passed;
    }
  }
  return aged;
}

}  // namespace muster::launcher
