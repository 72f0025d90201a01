#include "rendezvous/pages/job_figures.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <variant>

#include "rendezvous/core/phrases.h"
#include "rendezvous/pages/job_json.h"

namespace muster::rendezvous {
namespace {

constexpr JobState kJobStates[] = {JobState::kGathering, JobState::kRunning, JobState::kEnded};
constexpr NodeState kNodeStates[] = {NodeState::kJoined,   NodeState::kStarting,
                                     NodeState::kRunning,  NodeState::kSucceeded,
                                     NodeState::kStopping, NodeState::kSpare};
double Seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

template <typename Value>
void WriteByJob(const std::vector<JobSnapshot>& jobs, const char* name, const char* help,
                const Value& value, Exposition& out) {
  out.Gauge(name, help);
  std::size_t count = 0;
  for (const JobSnapshot& job : jobs) {
    // The one that has ended is told of by muster_jobs_ended_total.
    if (job.state == JobState::kEnded || ++count > JobFigures::kMostJobs) continue;
    out.Sample(static_cast<double>(value(job)), {{"job", job.run_id}});
  }
}

}  // namespace

void JobFigures::Count(const Transition& transition) {
  if (const auto* const started = std::get_if<RoundStarted>(&transition.milestone)) {
    ++rounds_started_;
    (started->is_restart ? recovery_ : gathering_).Observe(Seconds(started->gathered));
  } else if (const auto* const over = std::get_if<RoundOver>(&transition.milestone)) {
    ++rounds_over_[static_cast<std::size_t>(over->why)];
    if (over->ran) run_seconds_ += Seconds(*over->ran);
  } else if (const auto* const ended = std::get_if<JobEnded>(&transition.milestone)) {
    ++jobs_ended_[static_cast<std::size_t>(ended->how)];
  }
}

void JobFigures::Write(const std::vector<JobSnapshot>& jobs, Exposition& out) const {
  out.Gauge("muster_jobs", "Jobs by state; of those that have ended, the last 64.");
  for (const JobState state : kJobStates) {
    const auto count = std::count_if(jobs.begin(), jobs.end(),
                                     [&](const JobSnapshot& job) { return job.state == state; });
    out.Sample(static_cast<double>(count), {{"state", StateName(state)}});
  }
  out.Gauge("muster_nodes", "Nodes that attend, by state.");
  for (const NodeState state : kNodeStates) {
    std::ptrdiff_t count = 0;
    for (const JobSnapshot& job : jobs) {
      count += std::count_if(job.nodes.begin(), job.nodes.end(),
                             [&](const NodeSnapshot& node) { return node.state == state; });
    }
    out.Sample(static_cast<double>(count), {{"state", StateName(state)}});
  }
  out.Counter("muster_rounds_started_total", "Rounds whose members were told their ranks.");
  out.Sample(static_cast<double>(rounds_started_));
  out.Counter("muster_rounds_over_total", "Rounds that another one followed, by cause.");
  for (int i = 0; i < kRoundEnds; ++i) {
    out.Sample(static_cast<double>(rounds_over_[static_cast<std::size_t>(i)]),
               {{"cause", Name(static_cast<RoundEnd>(i))}});
  }
  out.Counter("muster_jobs_ended_total", "Jobs that have a verdict, by outcome.");
  for (std::size_t i = 0; i < jobs_ended_.size(); ++i) {
    out.Sample(static_cast<double>(jobs_ended_[i]),
               {{"outcome", Name(static_cast<VerdictKind>(i))}});
  }
  out.Counter("muster_rounds_run_seconds_total",
              "How long rounds ran that another one followed, together.");
  out.Sample(run_seconds_);
  out.Histogram("muster_gathering_seconds",
                "From the first node of a job to its first round's start.", gathering_);
  out.Histogram("muster_recovery_seconds",
                "From when a round is over to the start of the next: what a restart costs.",
                recovery_);
  WriteByJob(
      jobs, "muster_job_round", "The job's current round.",
      [](const JobSnapshot& job) { return job.round; }, out);
  WriteByJob(
      jobs, "muster_job_restarts", "Restarts that the job has spent.",
      [](const JobSnapshot& job) { return job.restart_count; }, out);
  WriteByJob(
      jobs, "muster_job_nodes", "Nodes that attend the job, spares included.",
      [](const JobSnapshot& job) { return job.nodes.size(); }, out);
  WriteByJob(jobs, "muster_job_ranks", "Ranks of the job's current round.", CountRanks, out);
  WriteByJob(
      jobs, "muster_job_age_seconds", "Since the job was made.",
      [](const JobSnapshot& job) { return Seconds(job.age); }, out);
}

}  // namespace muster::rendezvous
