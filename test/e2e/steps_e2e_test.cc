// Workers' reports of their steps, and which of them slows the others down.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/e2e_fixture.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

using Json = nlohmann::json;

class StepsTest : public E2eTest {
 protected:
  // One node of two, with two ranks.
  Command StartNode(const Daemon& daemon, int rank, const std::string& threshold) {
    return StartAgent({"--nnodes=2", "--nproc-per-node=2", "--rdzv-id=job",
                       "--node-rank=" + std::to_string(rank), "--rdzv-endpoint=" + daemon.endpoint,
                       "--straggler-threshold=" + threshold, "--event-log=" + Path("events.json")},
                      "exec python3 test/e2e/slow_worker.py " + Path("."));
  }
  static std::string Status(const Daemon& daemon, const std::vector<std::string>& more) {
    std::vector<std::string> argv =
        Joined({MusterPath(), "status", "--rdzv-endpoint", daemon.endpoint, "--rdzv-id=job"}, more);
    Command command(std::move(argv));
    EXPECT_EQ(command.Wait(), 0) << command.err();
    return command.out();
  }
  // There may be none yet.
  static std::string Jobs(const Daemon& daemon) {
    Command command({MusterPath(), "status", "--rdzv-endpoint", daemon.endpoint, "--json"});
    EXPECT_EQ(command.Wait(), 0) << command.err();
    return command.out();
  }
  // From `muster status --json`; null if it has reported nothing.
  static Json Rank(const Daemon& daemon, int rank) {
    const Json jobs = Json::parse(Jobs(daemon), nullptr, false);
    if (!jobs.is_array() || jobs.empty()) return nullptr;
    for (const Json& node : jobs[0]["nodes"]) {
      for (const Json& one : node["ranks"]) {
        if (one["rank"] == rank) return one;
      }
    }
    return nullptr;
  }
};

// "All ranks took the same time for each step, and I could not see whose disk was slow."
TEST_F(StepsTest, RankThatSlowsTheOthersDownIsNamedWithHostAndPhase) {
  const Daemon daemon = StartDaemon();
  const std::string slow = Write("slow", "");
  Command first = StartNode(daemon, 0, "0.5");
  Command second = StartNode(daemon, 1, "0.5");
  const std::string who = "rank 2 on host " + HostName();
  ASSERT_TRUE(first.WaitForErr(who + " is a straggler, ")) << first.err() << second.err();
  EXPECT_TRUE(Contains(first.err(), " of that in 'data', ")) << first.err();

  const Json rank = Rank(daemon, 2);
  EXPECT_GT(rank["step"], 5);
  EXPECT_EQ(rank["samples_per_second"], 64);
  EXPECT_TRUE(rank["loss"].is_number()) << rank;
  EXPECT_EQ(rank["straggler"]["phase"], "data") << rank;
  EXPECT_GT(rank["straggler"]["slower"], 0.25);
  const Json other = Rank(daemon, 3);
  EXPECT_EQ(other["straggler"], nullptr) << other;
  EXPECT_LT(other["own_seconds"], other["step_seconds"]);
  const std::string table = Status(daemon, {});
  EXPECT_TRUE(Contains(table, "RANK  HOST")) << table;
  EXPECT_TRUE(Contains(table, " % slower, most in data, for ")) << table;

  std::filesystem::remove(slow);
  ASSERT_TRUE(first.WaitForErr(who + " is no longer a straggler, after ")) << first.err();
  EXPECT_EQ(Rank(daemon, 2)["straggler"], nullptr);
  Write("end", "");
  EXPECT_EQ(first.Wait(), 0) << first.err();
  EXPECT_EQ(second.Wait(), 0) << second.err();
  EXPECT_FALSE(Contains(second.err(), "straggler")) << "it is said once, where the job is watched";
  Command replay({MusterPath(), "replay", Path("events.json")});
  EXPECT_EQ(replay.Wait(), 0) << replay.err();
  EXPECT_TRUE(Contains(replay.out(), who + " is a straggler, "));
  EXPECT_TRUE(Contains(replay.out(), who + " is no longer a straggler, after "));
}

TEST_F(StepsTest, WhoDoesNotWantToKnowIsToldNothing) {
  const Daemon daemon = StartDaemon();
  Write("slow", "");
  Command first = StartNode(daemon, 0, "0");
  Command second = StartNode(daemon, 1, "0");
  ASSERT_TRUE(WaitUntil([&] {
    const Json rank = Rank(daemon, 2);
    return rank.is_object() && rank["step"] > 60;
  })) << first.err();
  EXPECT_EQ(Rank(daemon, 2)["straggler"], nullptr);
  Write("end", "");
  EXPECT_EQ(first.Wait(), 0) << first.err();
  EXPECT_EQ(second.Wait(), 0) << second.err();
  EXPECT_FALSE(Contains(first.err(), "straggler")) << first.err();
}

// A run of one node has no rendezvous to ask: the terminal shows it.
TEST_F(StepsTest, StragglerOfOneNodeIsSaidWithoutAnyFlag) {
  Write("slow", "");
  Command run = StartAgent({"--standalone", "--nproc-per-node=4"},
                           "exec python3 test/e2e/slow_worker.py " + Path("."));
  ASSERT_TRUE(run.WaitForErr("rank 2 on host ")) << run.err();
  EXPECT_TRUE(run.WaitForErr(" is a straggler, ")) << run.err();
  Write("end", "");
  EXPECT_EQ(run.Wait(), 0) << run.err();
}

// The program in docs/observing.md, as printed, with a loader of three batches.
TEST_F(StepsTest, ProgramOfTheDocumentationTellsOfItsSteps) {
  std::stringstream docs;
  docs << std::ifstream("docs/observing.md").rdbuf();
  const std::string text = docs.str();
  const std::string fence = "```python\n";
  const std::size_t begin = text.find(fence) + fence.size();
  const std::string program = text.substr(begin, text.find("```", begin) - begin);
  ASSERT_TRUE(Contains(program, "MUSTER_BEAT_SOCKET"));
  const Daemon daemon = StartDaemon();
  const std::string script = Write(
      "train.py", "import os, time\nloader = [[1, 2]] * 3\ntrain = lambda batch: 0.5\n" + program +
                      "while not os.path.exists('" + Path("end") + "'): time.sleep(0.01)\n");
  Command run =
      StartMuster({"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + daemon.endpoint, script});
  Json rank;
  ASSERT_TRUE(WaitUntil([&] { return !(rank = Rank(daemon, 0)).is_null(); })) << run.err();
  EXPECT_EQ(rank["step"], 2);
  EXPECT_EQ(rank["loss"], 0.5);
  EXPECT_GT(rank["samples_per_second"], 0);
  EXPECT_EQ(rank["phases"][0]["name"], "data");
  EXPECT_EQ(rank["phases"][1]["name"], "wait_train");
  EXPECT_EQ(rank["phases"][1]["waits"], true);
  Write("end", "");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_FALSE(Contains(run.err(), "beat")) << "nothing of it was ignored: " << run.err();
}

// "A typo in our script, and we saw no loss and no warning."
TEST_F(StepsTest, WhatCannotBeReadOfABeatIsSaidOnce) {
  Command run = StartAgent({"--standalone"},
                           "python3 -c 'import os, socket\n"
                           "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                           "for step in range(3): s.sendto(b\"beat 0 %d loss=2,31\" % step, "
                           "os.environ[\"MUSTER_BEAT_SOCKET\"])'; ");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  const std::size_t at = run.err().find("sent a beat with \"loss=2,31\"");
  EXPECT_NE(at, std::string::npos) << run.err();
  EXPECT_EQ(run.err().find("loss=2,31", at + 30), std::string::npos) << run.err();
}

}  // namespace
}  // namespace muster::test
