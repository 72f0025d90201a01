#include "launcher/run/run_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

RunInfo Full() {
  return {.run_id = "x",
          .pid = 17,
          .script = "train.py",
          .devices = {{.name = "4", .uuid = "GPU-a"}, {.name = "5"}},
          .ranks = "0-1 of 8",
          .state = RunState::kRestarting,
          .since = std::chrono::sys_seconds(std::chrono::seconds(1795232437)),
          .log_dir = "/tmp/logs/x_1",
          .node_rank = 3,
          .nproc = 2,
          .launched = true};
}

TEST(RunInfoTest, ListFromAnotherHostIsRead) {
  RunInfo theirs = Full();
  theirs.host = "node1";
  EXPECT_EQ(ReadRunInfos(WriteRunInfos({theirs, RunInfo()})), (std::vector{Full(), RunInfo()}));
  EXPECT_EQ(ReadRunInfos("[]"), std::vector<RunInfo>());
  for (const char* const text : {"", "{}", "[1]", "[{\"pid\": 1}]", "[{}"}) {
    EXPECT_FALSE(ReadRunInfos(text)) << text;
  }
}

TEST(RunInfoTest, IsAJsonObjectWithOurNames) {
  EXPECT_EQ(WriteRunInfo(Full()), R"({
  "run_id": "x",
  "pid": 17,
  "script": "train.py",
  "devices": [
    {
      "name": "4",
      "uuid": "GPU-a"
    },
    {
      "name": "5",
      "uuid": ""
    }
  ],
  "ranks": "0-1 of 8",
  "state": "restarting",
  "since": "2026-11-21T03:40:37Z",
  "log_dir": "/tmp/logs/x_1",
  "node_rank": 3,
  "nproc": 2,
  "launched": true
}
)");
  EXPECT_EQ(WriteRunInfos({}), "[]\n");
}

TEST(RunInfoTest, WhatIsWrittenIsReadBack) {
  EXPECT_EQ(ReadRunInfo(WriteRunInfo(Full())), Full());
  EXPECT_EQ(ReadRunInfo(WriteRunInfo(RunInfo())), RunInfo());
  for (const RunState state : {RunState::kWaiting, RunState::kRunning, RunState::kStopping}) {
    EXPECT_EQ(ReadRunInfo(WriteRunInfo({.state = state}))->state, state);
  }
}

TEST(RunInfoTest, OlderAndNewerFilesAreRead) {
  const auto info = ReadRunInfo(R"({"pid": 9, "mood": "good", "run_id": "y"})");
  ASSERT_TRUE(info);
  EXPECT_EQ(*info, (RunInfo{.run_id = "y", .pid = 9}));
}

TEST(RunInfoTest, WhatIsNoRunIsNotRead) {
  for (const char* text :
       {"", "{", "[]", "17", "{}", R"({"run_id": "x"})", R"({"run_id": 1, "pid": 1})",
        R"({"run_id": "x", "pid": "1"})", R"({"run_id": "x", "pid": 1, "devices": [4]})",
        R"({"run_id": "x", "pid": 1, "ranks": []})"}) {
    EXPECT_FALSE(ReadRunInfo(text)) << text;
  }
}

// A number that no int holds became another one, such as the pid of somebody else's process.
TEST(RunInfoTest, ANumberThatIsNoIntIsNoRun) {
  const auto read = [](const std::string& more) {
    return ReadRunInfo(R"({"run_id":"j",)" + more + "}").has_value();
  };
  EXPECT_TRUE(read(R"("pid":17,"nproc":4,"node_rank":null)"));
  for (const char* number : {"4294967313", "-9223372036854775808", "22222222222222222228",
                             "18446744073709551615", "1.5", "\"1\"", "true"}) {
    EXPECT_FALSE(read(std::string("\"pid\":") + number)) << number;
    EXPECT_FALSE(read(std::string("\"pid\":1,\"nproc\":") + number)) << number;
    EXPECT_FALSE(read(std::string("\"pid\":1,\"node_rank\":") + number)) << number;
  }
}

TEST(RunInfoTest, ScriptNameThatIsNoUtf8IsWrittenAnyway) {
  const auto info = ReadRunInfo(WriteRunInfo({.run_id = "x", .script = "\xff.py"}));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->script, "\xEF\xBF\xBD.py");
}

TEST(DeviceConflictsTest, SameDeviceIsNamedWithItsOtherUser) {
  const RunInfo by_uuid = Full();
  const RunInfo by_name = {
      .run_id = "y", .pid = 18, .script = "other.py", .devices = {{.name = "4"}}};
  EXPECT_THAT(DeviceConflicts({by_uuid, by_name}, {{.name = "4", .uuid = "GPU-a"}}),
              ElementsAre("device 4 is also used by run 'x' (pid 17, train.py)",
                          "device 4 is also used by run 'y' (pid 18, other.py)"));
  EXPECT_THAT(DeviceConflicts({by_uuid}, {{.name = "0", .uuid = "GPU-a"}, {.name = "5"}}),
              ElementsAre("device 0 is also used by run 'x' (pid 17, train.py)",
                          "device 5 is also used by run 'x' (pid 17, train.py)"));
}

TEST(DeviceConflictsTest, OtherDevicesAreNone) {
  // The same index in another CUDA_DEVICE_ORDER.
  EXPECT_THAT(DeviceConflicts({Full()}, {{.name = "4", .uuid = "GPU-b"}}), IsEmpty());
  EXPECT_THAT(DeviceConflicts({Full()}, {{.name = "6"}}), IsEmpty());
  EXPECT_THAT(DeviceConflicts({Full()}, {}), IsEmpty());
  EXPECT_THAT(DeviceConflicts({}, {{.name = "4"}}), IsEmpty());
}

}  // namespace
}  // namespace muster::launcher
