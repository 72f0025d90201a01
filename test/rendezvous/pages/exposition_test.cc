// Metrics as Prometheus reads them.
#include "rendezvous/pages/exposition.h"

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

TEST(ExpositionTest, BucketsOfAHistogramHaveAllThatIsNotLonger) {
  DurationHistogram histogram;
  for (const double seconds : {0.0, 0.005, 0.006, 2.0, 1800.0, 1801.0}) histogram.Observe(seconds);
  EXPECT_EQ(histogram.UpTo(0), 2u) << "0.005 s and less";
  EXPECT_EQ(histogram.UpTo(1), 3u);
  EXPECT_EQ(histogram.UpTo(6), 3u) << "1 s and less";
  EXPECT_EQ(histogram.UpTo(7), 4u);
  EXPECT_EQ(histogram.UpTo(DurationHistogram::kBounds.size() - 1), 5u);
  EXPECT_EQ(histogram.UpTo(DurationHistogram::kBounds.size()), 6u);
  Exposition out;
  out.Histogram("muster_recovery_seconds", "How long.", histogram);
  const std::string text = out.Take();
  EXPECT_EQ(text.find("# HELP muster_recovery_seconds How long.\n"
                      "# TYPE muster_recovery_seconds histogram\n"
                      "muster_recovery_seconds_bucket{le=\"0.005\"} 2\n"
                      "muster_recovery_seconds_bucket{le=\"0.01\"} 3\n"),
            0u)
      << text;
  EXPECT_NE(text.find("muster_recovery_seconds_bucket{le=\"1800\"} 5\n"
                      "muster_recovery_seconds_bucket{le=\"+Inf\"} 6\n"
                      "muster_recovery_seconds_sum 3603.011\n"
                      "muster_recovery_seconds_count 6\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace muster::rendezvous
