// The trace's structure: Perfetto must show a process per node and a thread per rank.
#include "launcher/replay/views.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "test/launcher/replay/logs.h"

namespace muster::launcher {
namespace {

using base::Json;
using testing::Contains;
using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

// A trace, parsed.
struct TraceRead {
  explicit TraceRead(const Timeline& timeline) : json(base::ParseJson(TraceView(timeline))) {
    for (const Json& event : json["traceEvents"]) Take(event);
  }

  void Take(const Json& event) {
    const std::string phase = event["ph"];
    const int process = event["pid"];
    const int thread = event["tid"];
    EXPECT_NE(thread, 0);
    const auto [at, is_new] = process_of.emplace(thread, process);
    EXPECT_EQ(at->second, process) << "thread " << thread << " is in two processes";
    if (phase == "M") {
      if (event["name"] == "process_name") processes[process] = event["args"]["name"];
      if (event["name"] == "thread_name") threads[thread] = event["args"]["name"];
      return;
    }
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_EQ(threads.count(thread), 1u) << "a thread without a name";
    const std::string track = processes[process] + "/" + threads[thread];
    if (phase == "X") {
      EXPECT_GE(event["dur"].get<double>(), 0);
      slices[track].push_back(event["name"]);
    } else {
      EXPECT_EQ(phase, "i");
      EXPECT_THAT((std::set<std::string>{"t", "g"}), Contains(event["s"].get<std::string>()));
      instants[track].push_back(event["name"]);
    }
  }

  Json json;
  std::map<int, std::string> processes, threads;
  std::map<int, int> process_of;  // by thread
  std::map<std::string, std::vector<std::string>> slices, instants;
};

TEST(TraceViewTest, NodesAreProcessesAndRanksAreThreads) {
  const TraceRead read(test::TimelineOf({"two_failures_0.json", "two_failures_1.json"}));
  ASSERT_FALSE(read.json.is_discarded());
  EXPECT_THAT(read.processes, UnorderedElementsAre(Pair(testing::_, "job j7"),
                                                   Pair(testing::_, "node0-27449-24bepw"),
                                                   Pair(testing::_, "node1-27450-pcsl2e")));
  const std::vector<std::string> rounds = {"round 0", "round 1", "round 2"};
  EXPECT_EQ(read.slices.at("job j7/rounds"), rounds);
  EXPECT_EQ(read.slices.at("node0-27449-24bepw/rank 0"), rounds);
  EXPECT_EQ(read.slices.at("node0-27449-24bepw/rank 1"), rounds);
  EXPECT_EQ(read.slices.at("node1-27450-pcsl2e/rank 2"), rounds);
  EXPECT_EQ(read.slices.at("node1-27450-pcsl2e/rank 3"), rounds);
  EXPECT_THAT(
      read.slices.at("job j7/restarts"),
      ElementsAre("restart 0 to 1", "stopping", "gathering", "starting", "to first progress",
                  "restart 1 to 2", "stopping", "gathering", "starting", "to first progress"));
}

TEST(TraceViewTest, CausesAreInstants) {
  const TraceRead read(test::TimelineOf({"two_failures_0.json", "two_failures_1.json"}));
  EXPECT_THAT(read.instants.at("job j7/rounds"),
              ElementsAre("rank 3 on host node1 exited with code 7 (restart 1 of 3)",
                          "rank 0 on host node0 was killed by SIGKILL (restart 2 of 3)"));
  EXPECT_THAT(read.instants.at("node1-27450-pcsl2e/rank 3"),
              ElementsAre("rank 3 exited with code 7"));
  EXPECT_THAT(read.instants.at("node0-27449-24bepw/rank 0"),
              ElementsAre("rank 0 was killed by SIGKILL"));
}

// The node with rank 0 reports stragglers, wherever they run.
TEST(TraceViewTest, StragglersAreTheJobs) {
  test::AgentLog log("n0", 1);
  log.Assigned(1, 0, 0, 2, 2).At(2, {.kind = AgentEventKind::kWorkersStarted, .round = 0});
  log.At(3, {.kind = AgentEventKind::kStraggler, .round = 0, .rank = 1, .cause = "rank 1 is slow"});
  log.At(4, {.kind = AgentEventKind::kStragglerOver, .round = 0, .rank = 1, .cause = "it is not"});
  const TraceRead read(test::TimelineOfTexts({log.text()}));
  ASSERT_EQ(read.instants.size(), 1u);
  EXPECT_THAT(read.instants.begin()->first, testing::EndsWith("/stragglers"));
  EXPECT_THAT(read.instants.begin()->second, ElementsAre("rank 1 is slow", "it is not"));
}

TEST(TraceViewTest, WordsOfAWorkerAreJson) {
  test::AgentLog log("n0", 1);
  log.Assigned(1, 0, 0, 1, 1).At(2, {.kind = AgentEventKind::kWorkersStarted, .round = 0});
  log.At(3, {.kind = AgentEventKind::kWorkerFailed,
             .round = 0,
             .rank = 0,
             .cause = "said \"},{\n\x1b[2J\\"});
  const TraceRead read(test::TimelineOfTexts({log.text()}));
  ASSERT_FALSE(read.json.is_discarded());
  EXPECT_THAT(read.instants.at("n0/rank 0"), ElementsAre("rank 0 said \"},{\n\x1b[2J\\"));
}

}  // namespace
}  // namespace muster::launcher
