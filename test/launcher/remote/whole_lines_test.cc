#include "launcher/remote/launch_wire.h"

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

TEST(WholeLinesTest, LineIsPassedOnWhenItHasEnded) {
  WholeLines lines;
  EXPECT_EQ(lines.Add("one\ntw"), "one\n");
  EXPECT_EQ(lines.Add("o"), "");
  EXPECT_EQ(lines.Add("\nthree\nfour"), "two\nthree\n");
  EXPECT_EQ(lines.TakeRest(), "four");
  EXPECT_EQ(lines.TakeRest(), "");
}

TEST(WholeLinesTest, LineWithoutEndCostsNoMemory) {
  WholeLines lines;
  EXPECT_EQ(lines.Add(std::string(WholeLines::kMaxLine - 1, 'x')), "");
  EXPECT_EQ(lines.Add("yz").size(), WholeLines::kMaxLine + 1);
  EXPECT_EQ(lines.TakeRest(), "");
}

}  // namespace
}  // namespace muster::launcher
