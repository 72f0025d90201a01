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
// From a restart on one machine to a job that waits for nodes.
using std::chrono::milliseconds;
constexpr std::chrono::nanoseconds kRestarts[] = {
    milliseconds(5),       milliseconds(10),       milliseconds(50),     milliseconds(100),
    milliseconds(250),     milliseconds(500),      milliseconds(1000),   milliseconds(2500),
    milliseconds(5000),    milliseconds(10'000),   milliseconds(30'000), milliseconds(60'000),
    milliseconds(300'000), milliseconds(1'800'000)};

template <typename Value>
void WriteByJob(const std::vector<JobSnapshot>& jobs, const char* name, const char* help,
                const Value& value, Exposition& out) {
  out.Gauge(name, help);
  std::size_t count = 0;
  for (const JobSnapshot& job : jobs) {
    // The one that has ended is told of by muster_jobs_ended_total.
    if (job.state == JobState::kEnded || ++count > JobFigures::kMostJobs) continue;
    out.Sample(static_cast<double>(value(job)), {{"run_id", job.run_id}});
  }
}

std::ptrdiff_t CountWaiting(const JobSnapshot& job) {
  return std::count_if(job.nodes.begin(), job.nodes.end(), [](const NodeSnapshot& node) {
    return node.state == NodeState::kJoined || node.state == NodeState::kSpare;
  });
}

double GatheringSeconds(const JobSnapshot& job) {
  const bool gathers = job.state == JobState::kGathering && !job.rounds.empty();
  return gathers ? InSeconds(job.rounds.back().opened_ago) : 0;
}

}  // namespace

JobFigures::JobFigures()
    : gathering_(kRestarts),
      regathering_(kRestarts),
      recovery_(kRestarts),
      worker_detection_(kRestarts),
      node_detection_(kRestarts) {}

void JobFigures::Count(const Transition& transition) {
  if (const auto* const started = std::get_if<RoundStarted>(&transition.milestone)) {
    ++rounds_started_;
    (started->is_restart ? regathering_ : gathering_).Observe(started->gathered);
  } else if (const auto* const runs = std::get_if<RoundRuns>(&transition.milestone)) {
    if (runs->recovered) recovery_.Observe(*runs->recovered);
  } else if (const auto* const over = std::get_if<RoundOver>(&transition.milestone)) {
    ++rounds_over_[static_cast<std::size_t>(over->why)];
    if (over->ran) run_seconds_ += InSeconds(*over->ran);
    const bool lost = over->why == RoundEnd::kNodeLost;
    if (over->detected) (lost ? node_detection_ : worker_detection_).Observe(*over->detected);
  } else if (const auto* const ended = std::get_if<JobEnded>(&transition.milestone)) {
    ++jobs_ended_[static_cast<std::size_t>(ended->how)];
    if (ended->detected) worker_detection_.Observe(*ended->detected);
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
  WriteTimes(out);
  WriteJobs(jobs, out);
}

void JobFigures::WriteTimes(Exposition& out) const {
  out.Histogram("muster_gathering_seconds",
                "From the first node of a job to the start of its first round.");
  out.Buckets(gathering_);
  out.Histogram("muster_detection_seconds",
                "From a failure to the end of its round: from a worker's end, by its node's clock, "
                "or from when a node that is lost was last heard.");
  out.Buckets(worker_detection_, {{"failed", "worker"}});
  out.Buckets(node_detection_, {{"failed", "node"}});
  out.Histogram("muster_regathering_seconds",
                "From the end of a round until the members of the next were told their ranks.");
  out.Buckets(regathering_);
  out.Histogram("muster_recovery_seconds",
                "From the end of a round in which all workers ran until all workers of a later one "
                "had started: what a restart costs.");
  out.Buckets(recovery_);
}

void JobFigures::WriteJobs(const std::vector<JobSnapshot>& jobs, Exposition& out) {
  WriteByJob(
      jobs, "muster_job_round", "The job's current round.",
      [](const JobSnapshot& job) { return job.round; }, out);
  WriteByJob(
      jobs, "muster_job_restarts", "Restarts that the job has spent.",
      [](const JobSnapshot& job) { return job.restart_count; }, out);
  WriteByJob(
      jobs, "muster_job_max_restarts", "Restarts that the job may spend.",
      [](const JobSnapshot& job) { return job.settings.max_restarts; }, out);
  WriteByJob(
      jobs, "muster_job_nodes", "Nodes that attend the job, spares included.",
      [](const JobSnapshot& job) { return job.nodes.size(); }, out);
  WriteByJob(
      jobs, "muster_job_min_nodes", "Nodes without which no round of the job starts.",
      [](const JobSnapshot& job) { return job.settings.min_nodes; }, out);
  WriteByJob(jobs, "muster_job_waiting_nodes", "Nodes that wait for a place or for others.",
             CountWaiting, out);
  WriteByJob(jobs, "muster_job_waiting_seconds",
             "How long the current round has gathered; 0 once it has started.", GatheringSeconds,
             out);
  WriteByJob(jobs, "muster_job_ranks", "Ranks of the job's current round.", CountRanks, out);
  WriteByJob(
      jobs, "muster_job_age_seconds", "Since the job was made, until its verdict.",
      [](const JobSnapshot& job) { return InSeconds(job.age); }, out);
  WriteByJob(
      jobs, "muster_job_productive_seconds",
      "The part of its age in which all workers of a round ran, until what ended the round "
      "happened.",
      [](const JobSnapshot& job) { return InSeconds(job.productive); }, out);
  WriteByJob(jobs, "muster_job_goodput_ratio", "That part as a share, from 0 to 1.", Goodput, out);
  WriteByJob(
      jobs, "muster_job_store_keys", "Keys of the job's store.",
      [](const JobSnapshot& job) { return job.store_keys; }, out);
  WriteByJob(
      jobs, "muster_job_store_bytes", "Bytes of the keys and values of the job's store.",
      [](const JobSnapshot& job) { return job.store_bytes; }, out);
  WriteByJob(
      jobs, "muster_job_log_lost_bytes",
      "Bytes of the job's workers' output that log files did not take.",
      [](const JobSnapshot& job) { return job.log_bytes_lost; }, out);
}

}  // namespace muster::rendezvous
