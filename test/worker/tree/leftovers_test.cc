#include "worker/group/ladder_runner.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

// process_tree_test covers real leftovers.
TEST(LeftoversTest, TheFirstEightAreNamedAndTheOthersCounted) {
  std::vector<ProcessInfo> processes = {{.pid = 1, .name = "a"}, {.pid = 2, .name = "b"}};
  EXPECT_EQ(Enumerate({}), "");
  EXPECT_EQ(Enumerate(processes), "a (pid 1), b (pid 2)");
  for (pid_t pid = 3; pid <= 8; ++pid) processes.push_back({.pid = pid, .name = "c"});
  EXPECT_TRUE(Enumerate(processes).ends_with(", c (pid 8)"));
  for (pid_t pid = 9; pid <= 12; ++pid) processes.push_back({.pid = pid, .name = "d"});
  EXPECT_TRUE(Enumerate(processes).ends_with(", c (pid 8) and 4 more"));
}

}  // namespace
}  // namespace muster::worker
