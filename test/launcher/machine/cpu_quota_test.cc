// "--nproc-per-node=cpu started 64 workers in a container that may use one CPU."
#include "launcher/machine/cpus.h"

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

TEST(CpuQuotaTest, EitherVersionOfControlGroupsIsRead) {
  const test::TempDir group;
  EXPECT_EQ(CpuQuotaIn(group.path()), std::nullopt) << "the root group has no such file";
  group.Write("cpu.cfs_quota_us", "-1\n");
  group.Write("cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CpuQuotaIn(group.path()), std::nullopt);
  group.Write("cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(CpuQuotaIn(group.path()), 1.5);
  group.Write("cpu.max", "max 100000\n");
  EXPECT_EQ(CpuQuotaIn(group.path()), std::nullopt);
  group.Write("cpu.max", "200000 100000\n");
  EXPECT_EQ(CpuQuotaIn(group.path()), 2.0);
}

TEST(CpuQuotaTest, WorkersAreCountedByWholeCpus) {
  EXPECT_EQ(CountCpus(64, std::nullopt), 64);
  EXPECT_EQ(CountCpus(64, 1.0), 1);
  EXPECT_EQ(CountCpus(64, 1.5), 2);
  EXPECT_EQ(CountCpus(64, 0.1), 1);
  EXPECT_EQ(CountCpus(2, 8.0), 2);
  EXPECT_EQ(CountCpus(0, std::nullopt), 1);
}

}  // namespace
}  // namespace muster::launcher
