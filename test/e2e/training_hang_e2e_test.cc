// A rank of muster-train stands still and the others wait for it: the launcher names the operation
// of each, whichever process ends the job.
#include <csignal>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

// Processes that load LibTorch, on a machine that may have one slow core.
constexpr std::chrono::seconds kTrainingHangDeadline(240);

// "rank 0 waits in all-reduce 812 in shared memory (fc1.weight) for 3 s; rank 1 left all-reduce 811
// (fc1.weight) 3 s ago". Rank 1 may have been stopped in the operation that rank 0 waits in.
const char kWhere[] =
    "rank 0 waits in all-reduce [0-9]+( in shared memory)? \\([^()]+\\) for [0-9.]+ m?s; rank 1 "
    "(waits in|left) all-reduce [0-9]+( in shared memory)? \\([^()]+\\)|"
    "ranks 0, 1 wait in all-reduce [0-9]+( in shared memory)? \\([^()]+\\) for ";

testing::AssertionResult SaysWhere(const std::string& text) {
  if (std::regex_search(text, std::regex(kWhere))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no operations in:\n" << text;
}

// The report's text on them: the one field whose name leaves no space before the colon.
std::string Operations(const std::string& report) {
  const std::string name = "\n  operations: ";
  const std::size_t start = report.find(name);
  return start == std::string::npos ? ""
                                    : report.substr(start, report.find('\n', start + 1) - start);
}

class TrainingHangTest : public E2eTest, public testing::WithParamInterface<std::string> {
 protected:
  // Two ranks train until rank 1 is stopped meanwhile.
  Command TrainUntilOneStops(const std::vector<std::string>& flags, const std::string& more) {
    std::vector<std::string> all =
        Joined({"--nproc-per-node=2", "--log-dir=" + Path("logs")}, flags);
    Command agent = StartAgent(
        all, "echo $$ >" + Path("pid") + ".$RANK; exec trainer/muster-train --dataset=generated " +
                 "--no-eval --epochs=100000 --model=mlp --comm=" + GetParam() +
                 " --loss-log=" + Path("loss") + " " + more);
    Command stop({"sh", "-c",
                  "until [ \"$(wc -l <" + Path("loss") + " 2>/dev/null || echo 0)\" -ge 5 ]; " +
                      "do sleep 0.02; done; kill -STOP $(cat " + Path("pid") + ".1)"});
    EXPECT_EQ(stop.Wait(kTrainingHangDeadline), 0) << agent.err();
    return agent;
  }

  std::string Read(const std::string& pattern) const {
    Command cat({"sh", "-c", "cat " + pattern});
    EXPECT_EQ(cat.Wait(), 0);
    return cat.out();
  }
};
INSTANTIATE_TEST_SUITE_P(All, TrainingHangTest, testing::Values("gloo", "shm"),
                         [](const auto& info) { return info.param; });

// "All stacks said epoll_wait, and I could not see which rank they waited for, or in what."
TEST_P(TrainingHangTest, EvidenceOfAHangNamesOperationsAndTensors) {
  Command agent =
      TrainUntilOneStops({"--hang-timeout=3", "--shutdown-timeout=1", "--stack-command=true {pid}",
                          "--event-log=" + Path("events")},
                         "--timeout=300");
  EXPECT_EQ(agent.Wait(kTrainingHangDeadline), 1) << agent.err();
  EXPECT_TRUE(Contains(agent.err(), "gave no sign of life for "));
  EXPECT_TRUE(SaysWhere(agent.err()));
  EXPECT_TRUE(SaysWhere(Operations(agent.err())));
  for (const char* rank : {"0", "1"}) {
    EXPECT_TRUE(SaysWhere(Read(Path("logs") + "/*/attempt_0/evidence_rank" + rank + ".txt")));
  }
  EXPECT_TRUE(Contains(Read(Path("events")), "\"event\":\"operations\""));
}

// The waiting rank exited by itself when its time was over, without an explanation.
TEST_P(TrainingHangTest, TheReportOfATimeOutNamesOperationsAndTensors) {
  Command agent = TrainUntilOneStops({"--shutdown-timeout=1"}, "--timeout=15");
  EXPECT_EQ(agent.Wait(kTrainingHangDeadline), 1) << agent.err();
  EXPECT_TRUE(Contains(ReportField(agent.err(), "rank"), "0 (local_rank: 0)"));
  EXPECT_TRUE(SaysWhere(Operations(agent.err()))) << agent.err();
}

}  // namespace
}  // namespace muster::test
