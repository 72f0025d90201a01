#include "launcher/run/run_info.h"

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

TEST(RunTableTest, ColumnsAreAligned) {
  const std::vector<RunInfo> runs = {
      {.run_id = "standalone-ab12cd34",
       .pid = 17,
       .script = "train.py",
       .devices = {{.name = "4"}, {.name = "5"}},
       .ranks = "0-1 of 2",
       .state = RunState::kRunning,
       .since = std::chrono::sys_seconds(std::chrono::seconds(1795232437)),
       .log_dir = "/tmp/muster_x1",
       .node_rank = 0,
       .nproc = 2},
      {.run_id = "größe",
       .pid = 123456,
       .script = "a\x1b[2J\nb.py",
       .devices = {{.name = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"}}}};
  EXPECT_EQ(
      RunTable(runs, absl::FixedTimeZone(3600)),
      "RUN                  PID     NODE  DEVICES       RANKS     STATE    SINCE                "
      "LOGS            SCRIPT\n"
      "standalone-ab12cd34  17      0     4,5           0-1 of 2  running  2026-11-21 04:40:37  "
      "/tmp/muster_x1  train.py\n"
      "größe                123456  -     GPU-8932f937  -         waiting  1970-01-01 01:00:00  "
      "-               a?[2J b.py\n");
}

TEST(RunTableTest, RunsOfSeveralHostsHaveTheirNames) {
  const std::vector<RunInfo> runs = {{.run_id = "x", .pid = 17, .script = "a.py", .host = "node1"},
                                     {.run_id = "y", .pid = 18, .script = "b.py"}};
  EXPECT_EQ(RunTable(runs, absl::UTCTimeZone()),
            "HOST   RUN  PID  NODE  DEVICES  RANKS  STATE    SINCE                LOGS  SCRIPT\n"
            "node1  x    17   -     -        -      waiting  1970-01-01 00:00:00  -     a.py\n"
            "-      y    18   -     -        -      waiting  1970-01-01 00:00:00  -     b.py\n");
}

}  // namespace
}  // namespace muster::launcher
