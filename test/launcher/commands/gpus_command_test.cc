#include "launcher/commands/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/machine/nvml.h"

namespace muster::launcher {
namespace {

using testing::HasSubstr;

struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

Result Gpus(const std::vector<std::string>& args) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Result result;
  const base::Command command = GpusCommand();
  result.code = command.run({command, args, {}});
  result.out = testing::internal::GetCapturedStdout();
  result.err = testing::internal::GetCapturedStderr();
  return result;
}

TEST(GpusCommandTest, AMachineWithoutGpusHasAnEmptyListAndIsNotFit) {
  if (CountGpuNodes() > 0) GTEST_SKIP() << "this machine has GPUs";
  const Result table = Gpus({});
  EXPECT_EQ(table.code, 0);
  EXPECT_EQ(table.out, "");
  EXPECT_EQ(table.err, "no GPUs\n");
  EXPECT_THAT(Gpus({"--json"}).out, HasSubstr("\"gpus\": []"));
  const Result check = Gpus({"--check"});
  EXPECT_EQ(check.code, 1);
  EXPECT_EQ(check.err, "muster gpus: this machine has no NVIDIA GPU\n");
}

}  // namespace
}  // namespace muster::launcher
