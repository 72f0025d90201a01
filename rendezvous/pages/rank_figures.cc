#include "rendezvous/pages/rank_figures.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/pages/job_figures.h"

namespace muster::rendezvous {
namespace {

// What the ranks of one job have in common.
struct JobTold {
  const JobSnapshot& job;
  std::optional<std::int64_t> step;
  std::optional<double> loss;
  std::optional<double> samples_per_second;
  std::optional<double> stragglers;
};

JobTold Sum(const JobSnapshot& job) {
  JobTold told{.job = job, .step = {}, .loss = {}, .samples_per_second = {}, .stragglers = {}};
  for (const NodeSnapshot& node : job.nodes) {
    for (const RankSnapshot& rank : node.ranks) {
      const RankProgress& of_rank = rank.told;
      if (of_rank.step) told.step = std::min(told.step.value_or(*of_rank.step), *of_rank.step);
      if (!told.loss) told.loss = of_rank.loss;
      if (of_rank.samples_per_second) {
        told.samples_per_second = told.samples_per_second.value_or(0) + *of_rank.samples_per_second;
      }
      told.stragglers = told.stragglers.value_or(0) + (rank.straggling ? 1 : 0);
    }
  }
  return told;
}

template <typename Value>
void WriteOfJobs(const std::vector<JobTold>& jobs, const char* name, const char* help,
                 const Value& value, Exposition& out) {
  out.Gauge(name, help);
  for (const JobTold& job : jobs) {
    if (const auto of_job = value(job)) {
      out.Sample(static_cast<double>(*of_job), {{"run_id", job.job.run_id}});
    }
  }
}

void WriteTroubles(const std::vector<JobTold>& jobs, Exposition& out) {
  out.Gauge("muster_job_ranks_in_trouble",
            "Ranks of the current round with which something is wrong, by what.");
  for (const JobTold& job : jobs) {
    std::array<int, kTroubleKinds> counts{};
    for (const NodeSnapshot& node : job.job.nodes) {
      for (const TroubleSnapshot& trouble : node.troubles) {
        ++counts[static_cast<std::size_t>(trouble.told.kind)];
      }
    }
    for (int kind = 0; kind < kTroubleKinds; ++kind) {
      out.Sample(counts[static_cast<std::size_t>(kind)],
                 {{"run_id", job.job.run_id}, {"trouble", Name(static_cast<TroubleKind>(kind))}});
    }
  }
}

struct RankLine {
  const JobSnapshot& job;
  const NodeSnapshot& node;
  const RankSnapshot& rank;
  std::string number;
};

struct RankLines {
  std::vector<RankLine> first;
  std::vector<RankLine> more_stragglers;
};

RankLines LinesOf(const std::vector<JobSnapshot>& jobs) {
  RankLines lines;
  for (const JobSnapshot& job : jobs) {
    for (const NodeSnapshot& node : job.nodes) {
      for (const RankSnapshot& rank : node.ranks) {
        const bool is_first = lines.first.size() < kMostRankLines;
        if (!is_first && !rank.straggling) continue;
        std::vector<RankLine>& list = is_first ? lines.first : lines.more_stragglers;
        if (list.size() < kMostRankLines) {
          list.push_back({job, node, rank, std::to_string(rank.rank)});
        }
      }
    }
  }
  return lines;
}

template <typename Value>
void WriteOfRanks(const std::vector<RankLine>& lines, const Value& value, Exposition& out) {
  for (const RankLine& line : lines) {
    const auto of_rank = value(line.rank);
    if (!of_rank) continue;
    out.Sample(static_cast<double>(*of_rank),
               {{"run_id", line.job.run_id}, {"rank", line.number}, {"host", line.node.node.host}});
  }
}

void WriteStragglers(const std::vector<RankLine>& lines, Exposition& out) {
  for (const RankLine& line : lines) {
    if (!line.rank.straggling) continue;
    out.Sample(line.rank.straggling->slower, {{"run_id", line.job.run_id},
                                              {"rank", line.number},
                                              {"host", line.node.node.host},
                                              {"phase", line.rank.straggling->phase}});
  }
}

}  // namespace

void WriteRankFigures(const std::vector<JobSnapshot>& jobs, Exposition& out) {
  std::vector<JobTold> told;
  for (const JobSnapshot& job : jobs) {
    // One that has ended has no ranks.
    if (job.state == JobState::kEnded) continue;
    if (told.size() == JobFigures::kMostJobs) break;
    told.push_back(Sum(job));
  }
  WriteTroubles(told, out);
  WriteOfJobs(
      told, "muster_job_step", "The step of the rank that is furthest behind.",
      [](const JobTold& job) { return job.step; }, out);
  WriteOfJobs(
      told, "muster_job_loss", "The loss of the first rank that tells one.",
      [](const JobTold& job) { return job.loss; }, out);
  WriteOfJobs(
      told, "muster_job_samples_per_second", "Samples per second of all ranks together.",
      [](const JobTold& job) { return job.samples_per_second; }, out);
  WriteOfJobs(
      told, "muster_job_stragglers", "Ranks that are slower than the median by more than a share.",
      [](const JobTold& job) { return job.stragglers; }, out);
  const RankLines lines = LinesOf(jobs);
  out.Gauge("muster_rank_step", "The rank's last step.");
  WriteOfRanks(
      lines.first, [](const RankSnapshot& rank) { return rank.told.step; }, out);
  out.Gauge("muster_rank_loss", "The loss of the rank's last step.");
  WriteOfRanks(
      lines.first, [](const RankSnapshot& rank) { return rank.told.loss; }, out);
  out.Gauge("muster_rank_own_step_seconds",
            "The time of a step in which the rank does not wait for others.");
  WriteOfRanks(
      lines.first, [](const RankSnapshot& rank) { return OwnSeconds(rank.told); }, out);
  out.Gauge("muster_rank_straggling", "1: the rank is a straggler.");
  const auto straggles = [](const RankSnapshot& rank) {
    return std::optional(rank.straggling ? 1 : 0);
  };
  WriteOfRanks(lines.first, straggles, out);
  WriteOfRanks(lines.more_stragglers, straggles, out);
  out.Gauge("muster_straggler_slower_ratio",
            "By what share a straggler is slower than the median rank, and most in which phase.");
  WriteStragglers(lines.first, out);
  WriteStragglers(lines.more_stragglers, out);
}

}  // namespace muster::rendezvous
