#include "launcher/commands/gpus.h"

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
  result.code = GpusCommand(args);
  result.out = testing::internal::GetCapturedStdout();
  result.err = testing::internal::GetCapturedStderr();
  return result;
}

TEST(GpusCommandTest, ArgumentsAreChecked) {
  EXPECT_THAT(Gpus({"--help"}).out, HasSubstr("Usage: muster gpus [--check|--json]"));
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"0"}, {"--check", "--json"}, {"--jsn"}}) {
    const Result result = Gpus(args);
    EXPECT_EQ(result.code, 2) << args.back();
    EXPECT_THAT(result.err, HasSubstr("unexpected argument '" + args.back() + "'"));
  }
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
  EXPECT_EQ(check.err, "muster gpus: this machine shows no NVIDIA GPU\n");
}

}  // namespace
}  // namespace muster::launcher
