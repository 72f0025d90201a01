// Several nodes, one of which fails, is lost or waits: what the others do, and that all report the
// same.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

class NodeLossTest : public E2eTest {
 protected:
  std::vector<std::string> Flags(const std::string& nnodes,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> flags = {"--nnodes=" + nnodes, "--rdzv-id=job",
                                      "--rdzv-endpoint=" + daemon_.endpoint};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  // A script that says who it is and ends when a file is there.
  std::string WaitsFor(const std::string& file) const {
    return "echo rank $RANK of $WORLD_SIZE; while ! test -e " + Path(file) +
           "; do sleep 0.02; done";
  }

  int CountLines(const std::string& file) const {
    std::ifstream lines(Path(file));
    return static_cast<int>(std::count(std::istreambuf_iterator<char>(lines), {}, '\n'));
  }
  bool WaitForLines(const std::string& file, int count) const {
    const auto end = std::chrono::steady_clock::now() + Command::kDeadline;
    while (CountLines(file) < count && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return CountLines(file) >= count;
  }

  Daemon daemon_ = StartDaemon();
};

TEST_F(NodeLossTest, FailedJobIsRestartedOnceOnBothNodes) {
  const std::string script =
      "echo rank $RANK restart $TORCHELASTIC_RESTART_COUNT\n"
      "test $TORCHELASTIC_RESTART_COUNT = 1 && exit 0\n"
      "test $RANK = 1 && exit 3\n"
      "sleep 10000";
  Command one = StartAgent(Flags("2", {"--max-restarts=1"}), script);
  Command other = StartAgent(Flags("2", {"--max-restarts=1"}), script);
  for (Command* agent : {&one, &other}) {
    EXPECT_EQ(agent->Wait(), 0) << agent->err();
    EXPECT_TRUE(Contains(agent->out(), "restart 1"));
    EXPECT_TRUE(Contains(agent->err(), "round 0 is over: rank 1 on host "));
    EXPECT_TRUE(Contains(agent->err(), "(restart 1 of 1)"));
  }
}

TEST_F(NodeLossTest, NoRestartIsLeftAfterTheLast) {
  Command agent = StartAgent(Flags("1", {"--max-restarts=2"}),
                             "echo attempt $TORCHELASTIC_RESTART_COUNT; exit 4");
  EXPECT_EQ(agent.Wait(), 1);
  EXPECT_EQ(agent.out(), "attempt 0\nattempt 1\nattempt 2\n");
  EXPECT_TRUE(Contains(agent.err(), "3 rounds, 2 restarts"));
}

// "torchrun on the other nodes only said that it was closed; the cause was on one of 64 terminals."
TEST_F(NodeLossTest, EveryTerminalShowsTheSameRootCause) {
  const std::string script = "test $RANK = 1 && exit 7; sleep 10000";
  Command one = StartAgent(Flags("2", {"--exit-code=worker"}), script);
  Command other = StartAgent(Flags("2", {"--exit-code=worker"}), script);
  EXPECT_EQ(one.Wait(), 7) << one.err();
  EXPECT_EQ(other.Wait(), 7) << other.err();
  for (const char* field : {"rank", "exitcode", "reason", "error_file"}) {
    EXPECT_EQ(ReportField(one.err(), field), ReportField(other.err(), field));
  }
  // Two nodes of one name, as in containers: only where the worker ran is it this node.
  const int here = Contains(one.err(), " (this node)") + Contains(other.err(), " (this node)");
  EXPECT_EQ(here, 1) << one.err() << other.err();
  EXPECT_EQ(ReportField(one.err(), "rank"), "1 (local_rank: 0)");
  EXPECT_TRUE(ReportField(one.err(), "exitcode").starts_with("7 (pid: ")) << one.err();
}

// "One node died and the others hung until NCCL's timeout."
TEST_F(NodeLossTest, SurvivorGoesOnAloneWhenItMay) {
  const std::string script = "echo world $WORLD_SIZE; test $WORLD_SIZE = 1 || { sleep 10000; :; }";
  // The last call is long: when a node is lost, nobody is waited for.
  const std::vector<std::string> flags = Flags("1:2", {"--rdzv-conf=last_call_timeout=10000"});
  Command survivor = StartAgent(flags, script);
  Command lost = StartAgent(flags, script);
  ASSERT_TRUE(survivor.WaitForOut("world 2\n") && lost.WaitForOut("world 2\n")) << survivor.err();
  lost.Signal(SIGKILL);
  EXPECT_EQ(survivor.Wait(), 0) << survivor.err();
  EXPECT_EQ(survivor.out(), "world 2\nworld 1\n");
  EXPECT_TRUE(Contains(survivor.err(), "was lost: its agent died, and so did its workers"));
}

// "Two nodes were drained, and both left a job that could spare one." Slurm is a script here, which
// answers both in the same instant.
TEST_F(NodeLossTest, OfTwoNodesThatAreDrainedTogetherOneStays) {
  Write("scontrol",
        "#!/bin/sh\necho $3 >> " + Path("asked") + "\nwhile ! test -e " + Path("answer") +
            "; do sleep 0.01; done\ntest $3 = kept || printf '   State=MIXED+DRAIN\\n   "
            "Reason=bad fan [root@now]\\n'\n",
        0755);
  const auto start = [this](const std::string& node, const std::string& rank) {
    std::vector<std::string> arguments =
        Flags("2:3", {"--drain-interval=1", "--rdzv-conf=last_call_timeout=1"});
    for (const char* const each : {"--no-python", "sh", "-c"}) arguments.emplace_back(each);
    arguments.push_back(WaitsFor("end"));
    return StartMuster(std::move(arguments),
                       {"SLURM_JOB_ID=7", "SLURMD_NODENAME=" + node, "SLURM_NODEID=" + rank,
                        "PATH=" + Path("") + ":/usr/bin:/bin"});
  };
  Command kept = start("kept", "0");
  Command one = start("one", "1");
  Command other = start("other", "2");
  for (Command* const agent : {&kept, &one, &other}) {
    ASSERT_TRUE(agent->WaitForOut(" of 3\n")) << agent->err();
  }
  ASSERT_TRUE(WaitForLines("asked", 3));
  Write("answer", "");
  // Whoever it is.
  ASSERT_TRUE(kept.WaitForErr(" is leaving: Slurm drains it (bad fan)")) << kept.err();
  ASSERT_TRUE(kept.WaitForOut(" of 2\n")) << kept.err();
  // Who stays is asked for again, and nobody else leaves.
  ASSERT_TRUE(WaitForLines("asked", CountLines("asked") + 2));
  Write("end", "");
  int left = 0, stayed = 0;
  for (Command* const agent : {&kept, &one, &other}) {
    EXPECT_EQ(agent->Wait(), 0) << agent->err();
    left += Contains(agent->err(), "goes on without this node after ") ? 1 : 0;
    stayed += Contains(agent->err(),
                       "although Slurm drains it (bad fan): the job needs 2 nodes, "
                       "and has 2")
                  ? 1
                  : 0;
  }
  EXPECT_EQ(left, 1) << one.err() << other.err();
  EXPECT_EQ(stayed, 1) << one.err() << other.err();
}

TEST_F(NodeLossTest, SpareTakesThePlaceOfALostNode) {
  Command lost = StartAgent(Flags("2", {"--node-rank=0"}), WaitsFor("end"));
  Command stays = StartAgent(Flags("2", {"--node-rank=1"}), WaitsFor("end"));
  ASSERT_TRUE(lost.WaitForOut("rank 0 of 2\n") && stays.WaitForOut("rank 1 of 2\n"));
  Command spare = StartAgent(Flags("2"), WaitsFor("end"));
  ASSERT_TRUE(spare.WaitForErr("this node is a spare")) << spare.err();
  EXPECT_EQ(spare.out(), "");

  lost.Signal(SIGKILL);
  EXPECT_TRUE(spare.WaitForOut("rank 0 of 2\n")) << spare.err();
  EXPECT_TRUE(stays.WaitForOut("rank 1 of 2\nrank 1 of 2\n")) << stays.err();
  Write("end", "");
  EXPECT_EQ(spare.Wait(), 0) << spare.err();
  EXPECT_EQ(stays.Wait(), 0) << stays.err();
}

// "The spare node of a job that succeeded ended with exit 1 and a traceback."
TEST_F(NodeLossTest, SpareThatWasNotNeededSucceedsWithTheJob) {
  Command one = StartAgent(Flags("1"), WaitsFor("end"));
  ASSERT_TRUE(one.WaitForOut("rank 0 of 1\n"));
  Command spare = StartAgent(Flags("1"), WaitsFor("end"));
  ASSERT_TRUE(spare.WaitForErr("this node is a spare")) << spare.err();
  Write("end", "");
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_EQ(spare.Wait(), 0) << spare.err();
  EXPECT_EQ(spare.out(), "");
}

TEST_F(NodeLossTest, SurvivorsSayWhoIsMissingWhenNoReplacementComes) {
  const std::vector<std::string> flags = Flags("2", {"--rdzv-conf=join_timeout=2"});
  Command survivor = StartAgent(flags, WaitsFor("never"));
  Command lost = StartAgent(flags, WaitsFor("never"));
  ASSERT_TRUE(survivor.WaitForOut(" of 2\n") && lost.WaitForOut(" of 2\n"));
  lost.Signal(SIGKILL);
  EXPECT_EQ(survivor.Wait(), 3);
  EXPECT_TRUE(Contains(survivor.err(), "did not come together within 2 s: 1 of 2 nodes are here"));
}

TEST_F(NodeLossTest, JobEndsWhenTheDaemonIsKilled) {
  Command one = StartAgent(Flags("2"), WaitsFor("never"));
  Command other = StartAgent(Flags("2"), WaitsFor("never"));
  ASSERT_TRUE(one.WaitForOut(" of 2\n") && other.WaitForOut(" of 2\n"));
  daemon_.process.Signal(SIGKILL);
  EXPECT_EQ(daemon_.process.Wait(), -SIGKILL);
  for (Command* agent : {&one, &other}) {
    EXPECT_EQ(agent->Wait(), 3);
    EXPECT_EQ(Lines(agent->err()).size(), 2u) << agent->err();
    EXPECT_TRUE(Contains(agent->err(), "the connection to the rendezvous at " + daemon_.endpoint));
    EXPECT_TRUE(Contains(agent->err(), "the rendezvous at " + daemon_.endpoint + " is gone"));
  }
}

TEST_F(NodeLossTest, DaemonThatIsToldToEndWaitsForTheRunningJob) {
  Command one = StartAgent(Flags("2"), WaitsFor("end"));
  Command other = StartAgent(Flags("2"), WaitsFor("end"));
  ASSERT_TRUE(one.WaitForOut(" of 2\n") && other.WaitForOut(" of 2\n"));
  daemon_.process.Signal(SIGTERM);
  ASSERT_TRUE(daemon_.process.WaitForErr("draining")) << daemon_.process.err();

  Command late = StartAgent(Flags("2", {"--rdzv-id=another"}), "true");
  EXPECT_EQ(late.Wait(), 3);
  EXPECT_EQ(Lines(late.err()).size(), 1u) << late.err();
  EXPECT_TRUE(Contains(late.err(), "takes no new nodes: the daemon is ending (SIGTERM)"));

  Write("end", "");
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_EQ(other.Wait(), 0) << other.err();
  EXPECT_EQ(daemon_.process.Wait(), 0) << daemon_.process.err();
}

}  // namespace
}  // namespace muster::test
