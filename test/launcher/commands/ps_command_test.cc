#include "launcher/commands/commands.h"

#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/run/run_registry.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct PsResult {
  int code = -1;
  std::string out;
  std::string err;
};

class PsCommandTest : public testing::Test {
 protected:
  PsCommandTest() { setenv("MUSTER_RUNS_DIR", temp_.path().c_str(), 1); }
  ~PsCommandTest() override { unsetenv("MUSTER_RUNS_DIR"); }

  PsResult Ps(const std::vector<std::string>& args) {
    const base::Command command = PsCommand();
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    PsResult result;
    result.code = command.run({command, args, {}});
    result.out = testing::internal::GetCapturedStdout();
    result.err = testing::internal::GetCapturedStderr();
    return result;
  }

  const test::TempDir temp_;
};

TEST_F(PsCommandTest, RunsAreListed) {
  const RunInfo info = {.run_id = "x", .pid = 17, .script = "train.py"};
  const auto registration = RunRegistration::Register({temp_.path()}, info);
  ASSERT_TRUE(registration.ok()) << registration.status();

  const PsResult table = Ps({});
  EXPECT_EQ(table.code, 0);
  EXPECT_THAT(table.out, StartsWith("RUN  PID  NODE"));
  EXPECT_THAT(table.out, HasSubstr("\nx    17   "));
  EXPECT_EQ(table.err, "");

  const PsResult json = Ps({"--json"});
  EXPECT_EQ(json.code, 0);
  EXPECT_EQ(json.out, WriteRunInfos({info}));
}

TEST_F(PsCommandTest, LogsAreNamedWhereThereAreSome) {
  const test::TempDir logs;
  const RunInfo info = {.run_id = "x", .pid = 17, .script = "train.py", .log_dir = logs.path()};
  const auto registration = RunRegistration::Register({temp_.path()}, info);
  ASSERT_TRUE(registration.ok()) << registration.status();
  EXPECT_EQ(Ps({}).out.find(logs.path()), std::string::npos);
  logs.Write("stdout.log", "loss 1.0");
  EXPECT_THAT(Ps({}).out, HasSubstr(logs.path()));
}

TEST_F(PsCommandTest, NoRunsIsNoFailure) {
  const PsResult table = Ps({});
  EXPECT_EQ(table.code, 0);
  EXPECT_EQ(table.out, "");
  EXPECT_EQ(table.err, "no runs\n");
  EXPECT_EQ(Ps({"--json"}).out, "[]\n");
}

TEST_F(PsCommandTest, WarningsGoToStderr) {
  temp_.Write("fifo", "");
  setenv("MUSTER_RUNS_DIR", (temp_.path() + "/fifo").c_str(), 1);
  const PsResult result = Ps({"--json"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "[]\n");
  EXPECT_EQ(result.err,
            "muster ps: use " + temp_.path() + "/fifo: it is not a directory\nno runs\n");
}

}  // namespace
}  // namespace muster::launcher
