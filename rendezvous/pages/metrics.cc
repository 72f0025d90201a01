#include "rendezvous/pages/metrics.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include "rendezvous/core/values/phrases.h"
#include "rendezvous/pages/job_view.h"

namespace muster::rendezvous {
namespace {

std::string Escaped(std::string_view value) {
  return absl::StrReplaceAll(absl::string_view(value.data(), value.size()),
                             {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

// As many digits as make the number again.
std::string ValueText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return absl::StrFormat("%.15g", value);
}

}  // namespace

void Exposition::Counter(std::string_view name, std::string_view help) {
  Begin(name, "counter", help);
}

void Exposition::Gauge(std::string_view name, std::string_view help) {
  Begin(name, "gauge", help);
}

void Exposition::Sample(double value, const Labels& labels) {
  Line(name_, labels, value);
}

void Exposition::Histogram(std::string_view name, std::string_view help) {
  Begin(name, "histogram", help);
}

void Exposition::Buckets(const base::DurationHistogram& histogram, const Labels& labels) {
  const std::string bucket = absl::StrCat(name_, "_bucket");
  const auto line = [&](std::size_t i, std::string_view bound) {
    Labels with_bound = labels;
    with_bound.emplace_back("le", bound);
    Line(bucket, with_bound, static_cast<double>(histogram.UpTo(i)));
  };
  for (std::size_t i = 0; i < histogram.bounds().size(); ++i) {
    line(i, absl::StrCat(InSeconds(histogram.bounds()[i])));
  }
  line(histogram.bounds().size(), "+Inf");
  Line(absl::StrCat(name_, "_sum"), labels, InSeconds(histogram.sum()));
  Line(absl::StrCat(name_, "_count"), labels, static_cast<double>(histogram.count()));
}

void Exposition::Begin(std::string_view name, std::string_view type, std::string_view help) {
  name_ = std::string(name);
  absl::StrAppend(&text_, "# HELP ", name_, " ", std::string(help), "\n# TYPE ", name_, " ",
                  std::string(type), "\n");
}

void Exposition::Line(std::string_view name, const Labels& labels, double value) {
  absl::StrAppend(&text_, std::string(name));
  const char* separator = "{";
  for (const auto& [label, of] : labels) {
    absl::StrAppend(&text_, separator, std::string(label), "=\"", Escaped(of), "\"");
    separator = ",";
  }
  absl::StrAppend(&text_, labels.empty() ? "" : "}", " ", ValueText(value), "\n");
}

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

std::ptrdiff_t CountWaiting(const JobSnapshot& job) {
  return std::count_if(job.nodes.begin(), job.nodes.end(), [](const NodeSnapshot& node) {
    return node.state == NodeState::kJoined || node.state == NodeState::kSpare;
  });
}

double GatheringSeconds(const JobSnapshot& job) {
  const bool gathers = job.state == JobState::kGathering && !job.rounds.empty();
  return gathers ? InSeconds(job.rounds.back().opened_ago) : 0;
}

using OfJob = const JobSnapshot&;
using Steps = const JobSteps&;
using Value = std::optional<double>;

// A figure of each job that there is; nullopt: the job has none.
struct JobFigure {
  const char* name;
  const char* help;
  Value (*value)(OfJob job, Steps steps);
};
constexpr JobFigure kJobFigures[] = {
    {"muster_job_round", "The job's current round.",
     [](OfJob job, Steps) -> Value { return job.round; }},
    {"muster_job_restarts", "Restarts used by the job.",
     [](OfJob job, Steps) -> Value { return job.restart_count; }},
    {"muster_job_max_restarts", "Restarts allowed for the job.",
     [](OfJob job, Steps) -> Value { return job.settings.max_restarts; }},
    {"muster_job_nodes", "Nodes connected to the job, including spares.",
     [](OfJob job, Steps) -> Value { return job.nodes.size(); }},
    {"muster_job_min_nodes", "Nodes that a round of the job needs to start.",
     [](OfJob job, Steps) -> Value { return job.settings.min_nodes; }},
    {"muster_job_waiting_nodes", "Nodes that wait for a place or for other nodes.",
     [](OfJob job, Steps) -> Value { return CountWaiting(job); }},
    {"muster_job_waiting_seconds",
     "How long the current round has gathered; 0 once it has started.",
     [](OfJob job, Steps) -> Value { return GatheringSeconds(job); }},
    {"muster_job_ranks", "Ranks of the job's current round.",
     [](OfJob job, Steps) -> Value { return CountRanks(job); }},
    {"muster_job_age_seconds", "Time since the job was created, until it ended.",
     [](OfJob job, Steps) -> Value { return InSeconds(job.age); }},
    {"muster_job_productive_seconds",
     "The part of its age in which all workers of a round ran, until what ended the round "
     "happened.",
     [](OfJob job, Steps) -> Value { return InSeconds(job.productive); }},
    {"muster_job_goodput_ratio", "The same as a fraction, from 0 to 1.",
     [](OfJob job, Steps) -> Value { return Goodput(job); }},
    {"muster_job_store_keys", "Keys of the job's store.",
     [](OfJob job, Steps) -> Value { return job.store_keys; }},
    {"muster_job_store_bytes", "Bytes of the keys and values of the job's store.",
     [](OfJob job, Steps) -> Value { return job.store_bytes; }},
    {"muster_job_log_lost_bytes",
     "Bytes of the job's output that could not be written to log files.",
     [](OfJob job, Steps) -> Value { return job.log_bytes_lost; }},
    {"muster_job_step", "The step of the rank that is furthest behind.",
     [](OfJob, Steps steps) -> Value { return steps.step; }},
    {"muster_job_loss", "The loss of the first rank that reports one.",
     [](OfJob, Steps steps) -> Value { return steps.loss; }},
    {"muster_job_samples_per_second", "Samples per second of all ranks together.",
     [](OfJob, Steps steps) -> Value { return steps.samples_per_second; }},
    {"muster_job_stragglers", "Ranks slower than the median by more than the straggler threshold.",
     [](OfJob, Steps steps) -> Value { return steps.stragglers; }},
};

// Of jobs that have ended muster_jobs_ended_total tells.
std::vector<const JobSnapshot*> ShownJobs(const std::vector<JobSnapshot>& jobs) {
  std::vector<const JobSnapshot*> shown;
  for (const JobSnapshot& job : jobs) {
    if (job.state != JobState::kEnded && shown.size() < JobFigures::kMostJobs)
      shown.push_back(&job);
  }
  return shown;
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
  out.Gauge("muster_nodes", "Connected nodes, by state.");
  for (const NodeState state : kNodeStates) {
    std::ptrdiff_t count = 0;
    for (const JobSnapshot& job : jobs) {
      count += std::count_if(job.nodes.begin(), job.nodes.end(),
                             [&](const NodeSnapshot& node) { return node.state == state; });
    }
    out.Sample(static_cast<double>(count), {{"state", StateName(state)}});
  }
  out.Counter("muster_rounds_started_total", "Rounds that were formed.");
  out.Sample(static_cast<double>(rounds_started_));
  out.Counter("muster_rounds_over_total", "Rounds that were followed by another, by cause.");
  for (int i = 0; i < kRoundEnds; ++i) {
    out.Sample(static_cast<double>(rounds_over_[static_cast<std::size_t>(i)]),
               {{"cause", Name(static_cast<RoundEnd>(i))}});
  }
  out.Counter("muster_jobs_ended_total", "Jobs that have ended, by outcome.");
  for (std::size_t i = 0; i < jobs_ended_.size(); ++i) {
    out.Sample(static_cast<double>(jobs_ended_[i]),
               {{"outcome", Name(static_cast<VerdictKind>(i))}});
  }
  out.Counter("muster_rounds_run_seconds_total",
              "Total time of rounds that were followed by another.");
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
  const std::vector<const JobSnapshot*> shown = ShownJobs(jobs);
  std::vector<JobSteps> steps;
  for (const JobSnapshot* const job : shown) steps.push_back(StepsOf(*job));
  for (const JobFigure& figure : kJobFigures) {
    out.Gauge(figure.name, figure.help);
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const Value value = figure.value(*shown[i], steps[i]);
      if (value) out.Sample(*value, {{"run_id", shown[i]->run_id}});
    }
  }
}

namespace {

void WriteRankAlerts(const std::vector<JobSnapshot>& jobs, Exposition& out) {
  out.Gauge("muster_job_ranks_in_trouble",
            "Ranks of the current round that are in trouble, by kind.");
  for (const JobSnapshot* const job : ShownJobs(jobs)) {
    std::array<int, kRankAlertKinds> counts{};
    for (const NodeSnapshot& node : job->nodes) {
      for (const RankAlertSnapshot& alert : node.alerts) {
        ++counts[static_cast<std::size_t>(alert.told.kind)];
      }
    }
    for (int kind = 0; kind < kRankAlertKinds; ++kind) {
      out.Sample(counts[static_cast<std::size_t>(kind)],
                 {{"run_id", job->run_id}, {"trouble", Name(static_cast<RankAlertKind>(kind))}});
    }
  }
}

// What a rank tells, of those that tell it.
struct RankFigure {
  const char* name;
  const char* help;
  Value (*value)(const RankSnapshot& rank);
};
constexpr RankFigure kRankFigures[] = {
    {"muster_rank_step", "The rank's last step.",
     [](const RankSnapshot& rank) -> Value { return rank.told.step; }},
    {"muster_rank_loss", "The loss of the rank's last step.",
     [](const RankSnapshot& rank) -> Value { return rank.told.loss; }},
    {"muster_rank_own_step_seconds", "Time of a step, not counting waiting for other ranks.",
     [](const RankSnapshot& rank) -> Value { return OwnSeconds(rank.told); }},
};

void WriteSample(const ShownRank& of, double value, Exposition& out, bool with_phase = false) {
  const std::string rank = std::to_string(of.rank.rank);
  Exposition::Labels labels = {
      {"run_id", of.job.run_id}, {"rank", rank}, {"host", of.node.node.host}};
  if (with_phase) labels.emplace_back("phase", of.rank.straggling->phase);
  out.Sample(value, labels);
}

}  // namespace

void WriteRankFigures(const std::vector<JobSnapshot>& jobs, Exposition& out) {
  WriteRankAlerts(jobs, out);
  const ShownRanks ranks = ChooseRanks(jobs, kMostRankLines);
  for (const RankFigure& figure : kRankFigures) {
    out.Gauge(figure.name, figure.help);
    for (const ShownRank& of : ranks.first) {
      if (const Value value = figure.value(of.rank)) WriteSample(of, *value, out);
    }
  }
  out.Gauge("muster_rank_straggling", "1: the rank is a straggler.");
  for (const auto* const shown : {&ranks.first, &ranks.more_stragglers}) {
    for (const ShownRank& of : *shown) WriteSample(of, of.rank.straggling ? 1 : 0, out);
  }
  out.Gauge(
      "muster_straggler_slower_ratio",
      "By what fraction a straggler is slower than the median rank, and in which phase most.");
  for (const auto* const shown : {&ranks.first, &ranks.more_stragglers}) {
    for (const ShownRank& of : *shown) {
      if (of.rank.straggling) WriteSample(of, of.rank.straggling->slower, out, true);
    }
  }
}

}  // namespace muster::rendezvous
