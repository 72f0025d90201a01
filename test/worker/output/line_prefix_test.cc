#include "worker/output/lines.h"

#include <cstdlib>
#include <ctime>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

using std::chrono::milliseconds;

class LinePrefixTest : public testing::Test {
 protected:
  LinePrefixTest() {
    // Two hours east of UTC: POSIX counts the other way.
    ::setenv("TZ", "EAST-2", 1);
    ::tzset();
  }
  ~LinePrefixTest() override {
    ::unsetenv("TZ");
    ::tzset();
  }
};

TEST_F(LinePrefixTest, PidAndTimeAreFilledIn) {
  const LinePrefix prefix("[${pid} ${time} ${rank} $]:", 17);
  const LinePrefix::Time time(milliseconds(45'296'007));
  EXPECT_EQ(prefix.At(time), "[17 14:34:56.007 ${rank} $]:");
  EXPECT_EQ(prefix.At(time + milliseconds(1000)), "[17 14:34:57.007 ${rank} $]:");
}

TEST_F(LinePrefixTest, ClockTimeGoesRoundAtMidnight) {
  EXPECT_EQ(ClockTime(LinePrefix::Time(std::chrono::hours(22))), "00:00:00.000");
  EXPECT_EQ(ClockTime(LinePrefix::Time(milliseconds(-1))), "01:59:59.999");
}

}  // namespace
}  // namespace muster::worker
