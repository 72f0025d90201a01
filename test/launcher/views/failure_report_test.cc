#include "launcher/run/failure_report.h"

#include <csignal>

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

const rendezvous::NodeInfo kNode{.node_id = "a-1", .host = "a"};
const worker::FailureRecord kExit70{.rank = 3,
                                    .local_rank = 1,
                                    .pid = 17,
                                    .status = {.exit_code = 70},
                                    .what = "exited with code 70",
                                    .stderr_tail = "no such layer\n",
                                    .log_path = "/logs/3/stderr.log",
                                    .error_file = "/logs/3/error.json"};

TEST(FailureReportTest, ReportSaysWhatTheGroupSawAndWhere) {
  const rendezvous::WorkerFailure expected{.rank = 3,
                                           .local_rank = 1,
                                           .node_id = "a-1",
                                           .host = "a",
                                           .pid = 17,
                                           .exit_code = 70,
                                           .what = "exited with code 70",
                                           .stderr_tail = "no such layer\n",
                                           .log_path = "/logs/3/stderr.log",
                                           .error_file = "/logs/3/error.json"};
  EXPECT_EQ(ReportOf(kExit70, kNode, {}, {}), expected);
}

TEST(FailureReportTest, ExitCodeThatTheUserNamedIsNotFollowedByARestart) {
  EXPECT_TRUE(ReportOf(kExit70, kNode, {}, {{1, 1}, {70, 79}}).final);
  EXPECT_TRUE(ReportOf(kExit70, kNode, {}, {{60, 70}}).final);
  EXPECT_FALSE(ReportOf(kExit70, kNode, {}, {{71, 79}}).final);
}

TEST(FailureReportTest, SignalIsNoExitCode) {
  worker::FailureRecord killed = kExit70;
  killed.status = {.exit_code = 70, .signal = SIGKILL};
  EXPECT_FALSE(ReportOf(killed, kNode, {}, {{0, 255}}).final);
}

TEST(FailureReportTest, SilentWorkerEndsTheJobWhereTheUserWantsThat) {
  EXPECT_TRUE(ReportOf(kExit70, kNode, {.ends_job = true}, {}).final);
  EXPECT_FALSE(ReportOf(kExit70, kNode, {.no_beat_yet = true}, {}).final);
  EXPECT_TRUE(ReportOf(kExit70, kNode, {.no_beat_yet = true}, {}).before_first_beat);
}

}  // namespace
}  // namespace muster::launcher
