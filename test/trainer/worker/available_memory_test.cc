#include "trainer/app/strategies/mesh_groups.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace muster::trainer {
namespace {

class AvailableMemoryTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string root_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(AvailableMemoryTest, OfTheMachineWhereNoGroupAllowsLess) {
  Write("/proc/meminfo", "MemTotal:  900 kB\nMemFree:  1 kB\nMemAvailable:     500 kB\n");
  EXPECT_EQ(AvailableMemory(root_), 500 * 1024);
  Write("/proc/self/cgroup", "0::/\n");
  EXPECT_EQ(AvailableMemory(root_), 500 * 1024);
}

TEST_F(AvailableMemoryTest, OfTheTightestGroup) {
  Write("/proc/meminfo", "MemAvailable: 500 kB\n");
  Write("/proc/self/cgroup", "1:cpu:/x\n0::/jobs/one\n");
  Write("/sys/fs/cgroup/jobs/one/memory.max", "max\n");
  Write("/sys/fs/cgroup/jobs/one/memory.current", "1000\n");
  EXPECT_EQ(AvailableMemory(root_), 500 * 1024);
  Write("/sys/fs/cgroup/jobs/memory.max", "300000\n");
  Write("/sys/fs/cgroup/jobs/memory.current", "100000\n");
  EXPECT_EQ(AvailableMemory(root_), 200'000);
  Write("/sys/fs/cgroup/jobs/one/memory.max", "900\n");
  EXPECT_EQ(AvailableMemory(root_), 1) << "which 0 would not be: it is unknown";
}

TEST_F(AvailableMemoryTest, NothingIsKnown) {
  EXPECT_EQ(AvailableMemory(root_), 0);
}

TEST_F(AvailableMemoryTest, OfThisMachine) {
  EXPECT_GT(AvailableMemory(), 1 << 20);
}

}  // namespace
}  // namespace muster::trainer
