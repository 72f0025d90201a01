// The metrics of a daemon are those that docs/metrics.md lists, and what the dashboard and the
// alert rules ask for is there.
#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/json.h"
#include "rendezvous/pages/metrics.h"
#include "rendezvous/server/daemon_pages.h"
#include "test/rendezvous/support/join_request.h"

namespace muster::rendezvous {
namespace {

using base::Json;

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
std::string Scraped() {
  boost::asio::io_context io;
  Server server(io);
  auto pages = DaemonPages::Open(io, {"127.0.0.1", 0}, Credentials::Plaintext(), server);
  EXPECT_TRUE(pages.ok()) << pages.status();
  RoundId round;
  const AgentId agent = server.daemon_loop().Attach([&round](const Directive& directive) {
    if (const auto* const assignment = std::get_if<Assignment>(&directive))
      round = assignment->id();
  });
  server.daemon_loop().Hear(agent, RequestFor(1, 1));
  // A rank that tells all there is.
  const RankProgress told{.step = 1,
                          .loss = 1,
                          .samples_per_second = 1,
                          .step_seconds = 1,
                          .phases = {{"data", 0.1}},
                          .timed_steps = 1};
  server.daemon_loop().Hear(agent, KeepAlive{.progress = {round, {told}}});
  return (*pages)->AnswerTo({.path = "/metrics"}).body;
}

Metrics Exposed() {
  // Whom it takes seconds to know, too.
  Exposition of_straggler;
  WriteRankFigures({{.run_id = "job",
                     .nodes = {{.ranks = {{.rank = 1, .straggling = Straggling{0.5, "data"}}}}}}},
                   of_straggler);
  Exposition of_standby;
  WriteStandbyFigures(true, of_standby);
  const std::string text = absl::StrCat(Scraped(), of_straggler.Take(), of_standby.Take());
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

// Whatever is wrong with an expression of PromQL, as far as names go; "" if nothing.
std::string Objection(const Metrics& metrics, const std::string& expression) {
  const std::regex name(R"(((?:muster|process)_[a-z_]+)(?:\{([^}]*)\})?)");
  const std::regex matcher("([a-z_]+) *(?:=~|!~|!=|=)");
  const std::set<std::string> of_scrape = {"job", "instance"};
  bool any = absl::StrContains(expression, "up{");
  for (std::sregex_iterator i(expression.begin(), expression.end(), name), end; i != end; ++i) {
    any = true;
    const std::string sample = (*i)[1];
    const auto metric = metrics.find(MetricOf(metrics, sample));
    if (metric == metrics.end()) return "there is no " + sample;
    if (metric->second.type == "histogram" && metric->first == sample) {
      return sample + " is a histogram: ask for its buckets, sum or count";
    }
    const std::string matchers = (*i)[2];
    for (std::sregex_iterator m(matchers.begin(), matchers.end(), matcher); m != end; ++m) {
      const std::string label = (*m)[1];
      const bool is_bound = label == "le" && absl::EndsWith(sample, "_bucket");
      if (is_bound || of_scrape.count(label) > 0 || metric->second.labels.count(label) > 0)
        continue;
      return sample + " has no label " + label;
    }
  }
  return any ? "" : "names no metric";
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

TEST(MetricsTest, DocumentationSaysHowManyTimeSeriesThereAre) {
  int of_job = 0, of_steps = 0, of_rank = 0;
  const std::vector<std::string> lines = absl::StrSplit(Scraped(), '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    if (!absl::StrContains(line, "{run_id=")) continue;
    const auto is_one_of = [&line](const std::vector<const char*>& names) {
      return std::any_of(names.begin(), names.end(), [&line](const char* name) {
        return absl::StartsWith(line, absl::StrCat(name, "{"));
      });
    };
    if (absl::StrContains(line, "rank=\"0\"")) {
      ++of_rank;
    } else if (is_one_of({"muster_job_step", "muster_job_loss", "muster_job_samples_per_second",
                          "muster_job_stragglers"})) {
      ++of_steps;
    } else if (!absl::StrContains(line, "rank=")) {
      ++of_job;
    }
  }
  const std::string docs = absl::StrReplaceAll(ReadFile("docs/metrics.md"), {{"\n", " "}});
  EXPECT_THAT(docs, testing::HasSubstr(
                        absl::StrCat(of_job, " for each of at most 1,000 jobs, and ", of_steps,
                                     " more where its workers tell of their steps; ", of_rank,
                                     " for each of at most 1,000 ranks that tell")));
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

TEST(MetricsTest, DashboardAsksForWhatIsThere) {
  const Metrics metrics = Exposed();
  const Json dashboard = base::ParseJson(ReadFile("docs/observing/grafana.json"));
  ASSERT_TRUE(dashboard.is_object());
  int expressions = 0;
  std::set<int> ids;
  for (const Json& panel : dashboard["panels"]) {
    EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second) << "two panels have one id";
    if (panel["type"] == "row") continue;
    EXPECT_FALSE(panel["description"].get<std::string>().empty()) << panel["title"];
    for (const Json& target : panel["targets"]) {
      const std::string expression = target["expr"];
      EXPECT_EQ(Objection(metrics, expression), "") << panel["title"] << ": " << expression;
      EXPECT_EQ(target["datasource"]["uid"], "${datasource}") << panel["title"];
      ++expressions;
    }
  }
  EXPECT_GT(expressions, 20);
  std::set<std::string> variables;
  for (const Json& variable : dashboard["templating"]["list"]) {
    variables.insert(variable["name"].get<std::string>());
    if (variable["type"] == "query") {
      EXPECT_EQ(Objection(metrics, variable["query"]["query"].get<std::string>()), "");
    }
  }
  EXPECT_THAT(variables, testing::IsSupersetOf({"datasource", "run_id"}));
}

TEST(MetricsTest, AlertsAskForWhatIsThereAndSayWhatToDo) {
  const Metrics metrics = Exposed();
  const std::string rules = ReadFile("docs/observing/alerts.yml");
  const std::string tests = ReadFile("docs/observing/alerts_test.yml");
  int alerts = 0;
  // Each rule begins with its name, and has its expression on one line.
  const std::vector<std::string> parts = absl::StrSplit(rules, "\n      - alert: ");
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string name = parts[i].substr(0, parts[i].find('\n'));
    std::smatch expression;
    ASSERT_TRUE(std::regex_search(parts[i], expression, std::regex("\n        expr: (.+)\n")))
        << name;
    EXPECT_EQ(Objection(metrics, expression[1]), "") << name;
    for (const char* const key :
         {"\n          severity: ", "\n          summary: ", "\n          description: "}) {
      EXPECT_TRUE(absl::StrContains(parts[i], key)) << name << " has no" << key;
    }
    EXPECT_TRUE(absl::StrContains(tests, "alertname: " + name + "\n")) << name << " is not tested";
    ++alerts;
  }
  EXPECT_GT(alerts, 10);
}

TEST(MetricsTest, WhatIsNotThereIsNoticed) {
  const Metrics metrics = Exposed();
  EXPECT_EQ(Objection(metrics, "muster_job_rounds > 1"), "there is no muster_job_rounds");
  EXPECT_EQ(Objection(metrics, "sum(muster_jobs{job_state=\"running\"})"),
            "muster_jobs has no label job_state");
  EXPECT_EQ(Objection(metrics, "rate(muster_recovery_seconds[5m])"),
            "muster_recovery_seconds is a histogram: ask for its buckets, sum or count");
  EXPECT_EQ(Objection(metrics, "muster_jobs{le=\"1\"}"), "muster_jobs has no label le");
  EXPECT_EQ(Objection(metrics, "1 > 2"), "names no metric");
  EXPECT_EQ(Objection(metrics, "muster_recovery_seconds_bucket{le=\"1\", job=\"x\"}"), "");
}

}  // namespace
}  // namespace muster::rendezvous
