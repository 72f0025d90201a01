// Metrics as text, in Prometheus' exposition format, version 0.0.4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::rendezvous {

// Durations counted by how long they were; the last bucket has all that were longer.
class DurationHistogram {
 public:
  // Upper bounds in seconds: from a restart on one machine to a job that waits for nodes.
  static constexpr std::array kBounds = {0.005, 0.01, 0.05, 0.1,  0.25, 0.5,   1.0,
                                         2.5,   5.0,  10.0, 30.0, 60.0, 300.0, 1800.0};

  void Observe(double seconds);

  // How many were not longer than kBounds[i]; those of kBounds.size() are all.
  std::uint64_t UpTo(std::size_t i) const;
  double sum() const { return sum_; }

 private:
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

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

  // A whole metric.
  void Histogram(std::string_view name, std::string_view help, const DurationHistogram& histogram);

  std::string Take() { return std::move(text_); }

 private:
  void Begin(std::string_view name, std::string_view type, std::string_view help);
  void Line(std::string_view name, const Labels& labels, double value);

  std::string name_;
  std::string text_;
};

}  // namespace muster::rendezvous
