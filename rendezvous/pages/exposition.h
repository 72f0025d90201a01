// Metrics as text, in Prometheus' exposition format, version 0.0.4.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/durations.h"

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

}  // namespace muster::rendezvous
