#include "worker/process/process_info.h"

#include <gtest/gtest.h>

namespace muster::worker {
namespace {

// A systemd machine with version 2 only.
constexpr char kUnifiedCgroup[] = "0::/user.slice/job-7\n";
constexpr char kUnifiedMounts[] =
    "24 1 0:22 / /proc rw,nosuid - proc proc rw\n"
    "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
// Both versions.
constexpr char kHybridCgroup[] = "5:cpu,cpuacct:/\n4:memory:/job-7\n1:name=systemd:/x\n0::/\n";
constexpr char kHybridMounts[] =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(CgroupPathsTest, UnifiedHierarchy) {
  const auto group = FindCgroup("", kUnifiedCgroup, kUnifiedMounts);
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(group->directory, "/sys/fs/cgroup/user.slice/job-7");
  EXPECT_EQ(group->Name(), "/user.slice/job-7");
  EXPECT_FALSE(FindCgroup("memory", kUnifiedCgroup, kUnifiedMounts).has_value());
}

TEST(CgroupPathsTest, BothVersions) {
  EXPECT_EQ(FindCgroup("memory", kHybridCgroup, kHybridMounts)->directory,
            "/sys/fs/cgroup/memory/job-7");
  EXPECT_EQ(FindCgroup("cpuacct", kHybridCgroup, kHybridMounts)->directory,
            "/sys/fs/cgroup/cpu,cpuacct");
  const auto unified = FindCgroup("", kHybridCgroup, kHybridMounts);
  EXPECT_EQ(unified->directory, "/sys/fs/cgroup/unified");
  EXPECT_EQ(unified->Name(), "/");
}

TEST(CgroupPathsTest, ContainerThatSeesItsPartOfTheHierarchy) {
  constexpr char kMounts[] =
      "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
  EXPECT_EQ(FindCgroup("memory", "4:memory:/docker/abc\n", kMounts)->directory,
            "/sys/fs/cgroup/memory");
  EXPECT_EQ(FindCgroup("memory", "4:memory:/docker/abc/x\n", kMounts)->directory,
            "/sys/fs/cgroup/memory/x");
  EXPECT_FALSE(FindCgroup("memory", "4:memory:/docker/abcd\n", kMounts).has_value());
  EXPECT_FALSE(FindCgroup("memory", "4:memory:/other\n", kMounts).has_value());
}

TEST(CgroupPathsTest, NothingThere) {
  EXPECT_FALSE(FindCgroup("", "", "").has_value());
  EXPECT_FALSE(FindCgroup("", "garbage\n\n", "more garbage - x\n").has_value());
  EXPECT_FALSE(FindCgroup("", kUnifiedCgroup, "").has_value());
}

TEST(CgroupPathsTest, ParentsUpToTheRoot) {
  const auto group = FindCgroup("", kUnifiedCgroup, kUnifiedMounts);
  EXPECT_EQ(group->Parent()->directory, "/sys/fs/cgroup/user.slice");
  const auto root = group->Parent()->Parent();
  EXPECT_EQ(root->directory, "/sys/fs/cgroup");
  EXPECT_FALSE(root->Parent().has_value());
}

}  // namespace
}  // namespace muster::worker
