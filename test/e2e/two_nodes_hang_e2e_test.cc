// A rank hangs on one node, and those of another one wait for it: which is killed, and what both
// nodes report.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

class TwoNodesHangTest : public E2eTest {
 protected:
  // One node of two, with one rank.
  Command StartNode(const Daemon& daemon, const std::string& logs, const std::string& stacks) {
    return StartAgent(
        {"--nnodes=2", "--rdzv-id=job", "--rdzv-endpoint=" + daemon.endpoint, "--hang-timeout=1.2",
         "--stack-command=" + stacks, "--log-dir=" + Path(logs)},
        "exec python3 test/e2e/hanging_worker.py " + Path("."));
  }
};

// "The node of the waiting rank killed its own, and the other one left no trace of the hang."
TEST_F(TwoNodesHangTest, TheRankThatTheOtherNodeWaitsForIsToBlame) {
  Daemon daemon = StartDaemon();
  Command nodes[] = {StartNode(daemon, "a", "true {pid}"), StartNode(daemon, "b", "true {pid}")};
  for (Command& node : nodes) {
    EXPECT_EQ(node.Wait(), 1) << node.err();
    EXPECT_TRUE(Contains(ReportField(node.err(), "rank"), "1 (local_rank: 0)")) << node.err();
    EXPECT_TRUE(Contains(node.err(), "operations: rank 1 left all-reduce 5 (grad) ")) << node.err();
  }
  const std::string one = nodes[0].err() + nodes[1].err();
  EXPECT_TRUE(Contains(one, "] rank 0 waits in all-reduce 6 (grad) for ")) << one;
  EXPECT_TRUE(Contains(one, "] rank 1 left all-reduce 5 (grad) ")) << one;
}

// Taking rank 1's stacks is so slow that the other node, after its wait, kills its own rank. "The
// node with the hanging rank had nothing to show."
TEST_F(TwoNodesHangTest, EvidenceIsWrittenAlsoIfTheOtherNodeEndsTheRound) {
  Daemon daemon = StartDaemon();
  const std::string stacks =
      "sh -c 'test $(tr \\\\0 \\\\n </proc/$0/environ | grep -c ^RANK=1) = 0 "
      "|| sleep 10000' {pid}";
  Command nodes[] = {StartNode(daemon, "a", stacks), StartNode(daemon, "b", stacks)};
  for (Command& node : nodes) EXPECT_EQ(node.Wait(), 1) << node.err();
  Command cat({"sh", "-c", "cat " + Path("?") + "/*/attempt_0/evidence_rank1.txt"});
  EXPECT_EQ(cat.Wait(), 0) << nodes[0].err() << nodes[1].err();
  EXPECT_TRUE(Contains(cat.out(), "rank 1 gave no sign of life for ")) << cat.out();
  EXPECT_TRUE(Contains(cat.out(), "rank 1 left all-reduce 5 (grad) ")) << cat.out();
  EXPECT_TRUE(Contains(cat.out(), "the workers were about to be stopped")) << cat.out();
}

}  // namespace
}  // namespace muster::test
