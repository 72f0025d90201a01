// Metrics of one user's jobs, as text in Prometheus' exposition format, version 0.0.4.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/durations.h"
#include "rendezvous/core/values/messages.h"
#include "rendezvous/core/values/snapshot.h"

namespace muster::rendezvous {

// As metrics have it.
constexpr double InSeconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

// Written from Debian's documentation of the format and not with prometheus-cpp, which Debian has
// as shared objects alone: musterd needs nothing but glibc.
class Exposition {
 public:
  // Names with their values; names are the caller's own, values are escaped.
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  // Begins a metric: all of its samples follow. `help` is one line.
  void Counter(std::string_view name, std::string_view help);
  void Gauge(std::string_view name, std::string_view help);
  void Sample(double value, const Labels& labels = {});

  // Begins one whose samples are histograms, in seconds.
  void Histogram(std::string_view name, std::string_view help);
  void Buckets(const base::DurationHistogram& histogram, const Labels& labels = {});

  std::string Take() { return std::move(text_); }

 private:
  void Begin(std::string_view name, std::string_view type, std::string_view help);
  void Line(std::string_view name, const Labels& labels, double value);

  std::string name_;
  std::string text_;
};

// Figures of one user's jobs: what has happened since the daemon began, and what is now.

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
