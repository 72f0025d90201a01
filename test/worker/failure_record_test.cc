#include "worker/exit_status.h"

#include <csignal>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

TEST(FailureRecordTest, AnExitIsOnePhrase) {
  EXPECT_EQ(DescribeExit({3, 0, false}), "exited with code 3");
  EXPECT_EQ(DescribeExit({0, SIGKILL, false}), "was killed by SIGKILL");
  EXPECT_EQ(DescribeExit({0, SIGSEGV, true}), "was killed by SIGSEGV (core dumped)");
}

}  // namespace
}  // namespace muster::worker
