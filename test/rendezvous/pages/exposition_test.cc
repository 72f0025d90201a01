// Metrics as Prometheus reads them.
#include "rendezvous/pages/metrics.h"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

TEST(ExpositionTest, MetricsAreNamedOnceAndValuesEscaped) {
  Exposition out;
  out.Counter("muster_rounds_total", "Rounds.");
  out.Sample(3);
  out.Gauge("muster_jobs", "Jobs by name.");
  out.Sample(0.25, {{"job", "a\"b\\c\nd"}, {"state", "running"}});
  out.Sample(123456789, {{"job", "größe"}});
  EXPECT_EQ(out.Take(),
            "# HELP muster_rounds_total Rounds.\n"
            "# TYPE muster_rounds_total counter\n"
            "muster_rounds_total 3\n"
            "# HELP muster_jobs Jobs by name.\n"
            "# TYPE muster_jobs gauge\n"
            "muster_jobs{job=\"a\\\"b\\\\c\\nd\",state=\"running\"} 0.25\n"
            "muster_jobs{job=\"größe\"} 123456789\n");
}

TEST(ExpositionTest, HistogramHasItsBucketsItsSumAndItsCountForEachSetOfLabels) {
  constexpr std::chrono::nanoseconds kBounds[] = {std::chrono::milliseconds(5),
                                                  std::chrono::seconds(30)};
  base::DurationHistogram histogram(kBounds);
  for (const int ms : {5, 6, 31'000}) histogram.Observe(std::chrono::milliseconds(ms));
  Exposition out;
  out.Histogram("muster_detection_seconds", "How long.");
  out.Buckets(histogram, {{"failed", "node"}});
  EXPECT_EQ(out.Take(),
            "# HELP muster_detection_seconds How long.\n"
            "# TYPE muster_detection_seconds histogram\n"
            "muster_detection_seconds_bucket{failed=\"node\",le=\"0.005\"} 1\n"
            "muster_detection_seconds_bucket{failed=\"node\",le=\"30\"} 2\n"
            "muster_detection_seconds_bucket{failed=\"node\",le=\"+Inf\"} 3\n"
            "muster_detection_seconds_sum{failed=\"node\"} 31.011\n"
            "muster_detection_seconds_count{failed=\"node\"} 3\n");
}

}  // namespace
}  // namespace muster::rendezvous
