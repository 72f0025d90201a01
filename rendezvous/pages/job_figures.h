// Figures of one user's jobs: what has happened since the daemon began, and what is now.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/durations.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/snapshot.h"
#include "rendezvous/pages/exposition.h"

namespace muster::rendezvous {

// Counts what the core tells and decides nothing. On the loop's thread.
class JobFigures {
 public:
  JobFigures();

  void Count(const Transition& transition);

  // As metrics, with a line for each job and figure of its own for the first kMostJobs of `jobs`.
  static constexpr std::size_t kMostJobs = 1000;
  void Write(const std::vector<JobSnapshot>& jobs, Exposition& out) const;

 private:
  void WriteTimes(Exposition& out) const;
  static void WriteJobs(const std::vector<JobSnapshot>& jobs, Exposition& out);

  std::uint64_t rounds_started_ = 0;
  std::array<std::uint64_t, kRoundEnds> rounds_over_{};
  std::array<std::uint64_t, kVerdictKinds> jobs_ended_{};
  double run_seconds_ = 0;
  base::DurationHistogram gathering_;
  base::DurationHistogram regathering_;
  base::DurationHistogram recovery_;
  base::DurationHistogram worker_detection_;
  base::DurationHistogram node_detection_;
};

// Figures of ranks, as their workers tell them in beats.

// Of as many ranks, over all jobs in order, there is a line of their own in each metric; and of as
// many more that are stragglers it is said that they are.
inline constexpr std::size_t kMostRankLines = 1000;

// As metrics: what is wrong with ranks of each job, and what ranks tell.
void WriteRankFigures(const std::vector<JobSnapshot>& jobs, Exposition& out);

}  // namespace muster::rendezvous
