#include "worker/group/health_check.h"

#include <csignal>
#include <string>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

using std::chrono::milliseconds;

std::string Judge(const TimedCommandResult& result, milliseconds timeout = milliseconds(30'000)) {
  const absl::Status status = JudgeHealth("check", timeout, result);
  EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status));
  return std::string(status.message());
}

constexpr ExitStatus kExit0;
constexpr ExitStatus kExit9{.exit_code = 9};
constexpr ExitStatus kKilled{.signal = SIGKILL};

TEST(HealthVerdictTest, NodeIsFitWhenItsCheckExitsWithZero) {
  EXPECT_EQ(Judge({.status = kExit0, .output = "8 GPUs\n"}), "");
}

TEST(HealthVerdictTest, CheckThatFailsSaysWhyInItsLastLine) {
  EXPECT_EQ(Judge({.status = kExit9}), "the health check 'check' exited with code 9");
  EXPECT_EQ(Judge({.status = kExit9, .output = "GPU 0\nGPU 1 is gone\n \n"}),
            "the health check 'check' exited with code 9: GPU 1 is gone");
}

TEST(HealthVerdictTest, CheckThatTakesTooLongIsNoSuccessHoweverItEnds) {
  EXPECT_EQ(Judge({.status = kKilled, .timed_out = true}, milliseconds(1'500)),
            "the health check 'check' did not end within 1.5 s and was killed");
  EXPECT_EQ(Judge({.status = kExit0, .timed_out = true}),
            "the health check 'check' did not end within 30 s and was killed");
}

TEST(HealthVerdictTest, CheckThatHangsInTheKernelIsNamed) {
  EXPECT_EQ(Judge({.timed_out = true, .output = "asking the driver"}),
            "the health check 'check' did not end within 30 s and not even SIGKILL ends it: "
            "asking the driver");
}

TEST(HealthVerdictTest, LastLineOfWhatWasCutIsNotTheLast) {
  EXPECT_EQ(Judge({.status = kExit9, .output = "a line\n", .output_cut = true}),
            "the health check 'check' exited with code 9");
}

TEST(HealthVerdictTest, OfALongLineTheBeginningIsShown) {
  const std::string why = Judge({.status = kExit9, .output = "no " + std::string(1'000, 'x')});
  EXPECT_TRUE(why.ends_with("xxx...")) << why;
  EXPECT_NE(why.find(": no xxx"), std::string::npos) << why;
  EXPECT_LT(why.size(), 400u);
}

}  // namespace
}  // namespace muster::worker
