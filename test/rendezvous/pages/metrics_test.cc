// The metrics of a daemon are those that docs/metrics.md lists.
#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "rendezvous/pages/daemon_pages.h"
#include "test/rendezvous/support/join_request.h"

namespace muster::rendezvous {
namespace {

struct Metric {
  std::string type;
  std::string help;
  std::set<std::string> labels;

  bool operator==(const Metric&) const = default;
};
using Metrics = std::map<std::string, Metric>;

std::string ReadFile(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_FALSE(text.str().empty()) << path;
  return text.str();
}

// Buckets, sums and counts are a histogram's.
std::string MetricOf(const Metrics& metrics, const std::string& sample) {
  for (const char* const suffix : {"_bucket", "_sum", "_count"}) {
    if (!absl::EndsWith(sample, suffix)) continue;
    const std::string base = sample.substr(0, sample.size() - std::string(suffix).size());
    const auto found = metrics.find(base);
    if (found != metrics.end() && found->second.type == "histogram") return base;
  }
  return sample;
}

// What a daemon answers that has one job.
Metrics Exposed() {
  boost::asio::io_context io;
  Server server(io);
  auto pages = DaemonPages::Open(io, {"127.0.0.1", 0}, Credentials::Plaintext(), server);
  EXPECT_TRUE(pages.ok()) << pages.status();
  server.driver().Hear(server.driver().Attach([](const Directive&) {}), RequestFor(1, 1));
  const std::string text = (*pages)->AnswerTo({.path = "/metrics"}).body;

  Metrics metrics;
  const std::regex sample(R"(([a-z_]+)(?:\{(.*)\})? [^ ]+)");
  const std::regex label(R"re(([a-z_]+)="(?:[^"\\]|\\.)*")re");
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    std::smatch parts;
    if (line[0] == '#') {
      const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
      (words[1] == "HELP" ? metrics[words[2]].help : metrics[words[2]].type) = words[3];
    } else if (std::regex_match(line, parts, sample)) {
      const std::string name = MetricOf(metrics, parts[1]);
      EXPECT_EQ(metrics.count(name), 1u) << line;
      const std::string labels = parts[2];
      for (std::sregex_iterator i(labels.begin(), labels.end(), label), end; i != end; ++i) {
        if ((*i)[1] != "le") metrics[name].labels.insert((*i)[1]);
      }
    } else {
      ADD_FAILURE() << "no line of the format: " << line;
    }
  }
  return metrics;
}

// The rows "| `name` | type | `label`, `label` | meaning |".
Metrics Documented() {
  Metrics metrics;
  const std::string text = ReadFile("docs/metrics.md");
  const std::regex row(R"(\| `([a-z_]+)` \| ([a-z]+) \| (.*) \| (.*) \|)");
  const std::regex label("`([a-z_]+)`");
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (const std::string& line : lines) {
    std::smatch parts;
    if (!std::regex_match(line, parts, row)) continue;
    Metric metric{.type = parts[2], .help = parts[4], .labels = {}};
    const std::string labels = parts[3];
    for (std::sregex_iterator i(labels.begin(), labels.end(), label), end; i != end; ++i) {
      metric.labels.insert((*i)[1]);
    }
    EXPECT_TRUE(metrics.emplace(parts[1], metric).second) << "twice: " << line;
  }
  return metrics;
}

TEST(MetricsTest, DocumentationListsEachWithItsTypeItsLabelsAndItsMeaning) {
  const Metrics exposed = Exposed();
  const Metrics documented = Documented();
  for (const auto& [name, metric] : exposed) {
    const auto found = documented.find(name);
    std::ostringstream row;
    row << "| `" << name << "` | " << metric.type << " | "
        << (metric.labels.empty() ? "" : "`" + absl::StrJoin(metric.labels, "`, `") + "`") << " | "
        << metric.help << " |";
    if (found == documented.end() || !(found->second == metric)) {
      ADD_FAILURE() << "docs/metrics.md needs the row\n" << row.str();
    }
  }
  for (const auto& [name, metric] : documented) {
    EXPECT_EQ(exposed.count(name), 1u) << name << " is in docs/metrics.md alone";
  }
}

// A scrape names its target in the labels `job` and `instance`: Prometheus renames ours if they
// have one of these names.
TEST(MetricsTest, LabelsAreNoneOfPrometheusOwn) {
  for (const auto& [name, metric] : Exposed()) {
    for (const char* const label : {"job", "instance", "le", "quantile"}) {
      EXPECT_EQ(metric.labels.count(label), 0u) << name;
    }
  }
}

}  // namespace
}  // namespace muster::rendezvous
