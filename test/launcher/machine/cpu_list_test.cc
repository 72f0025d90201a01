#include "launcher/machine/cpus.h"

#include <sched.h>

#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

TEST(CpuListTest, KernelsNotationIsReadAndWritten) {
  EXPECT_EQ(*ParseCpuList("0-3,8\n"), (CpuList{0, 1, 2, 3, 8}));
  EXPECT_EQ(*ParseCpuList("5"), (CpuList{5}));
  EXPECT_EQ(*ParseCpuList("\n"), CpuList());
  EXPECT_EQ(ParseCpuList("0-2047")->size(), 2048u);
  for (const char* text : {"0", "0-3,8", "0-1,3-4,4095", ""}) {
    EXPECT_EQ(PrintCpuList(*ParseCpuList(text)), text);
  }
}

TEST(CpuListTest, WhatIsNoListIsRefused) {
  for (const char* text : {"a", "1,", "3-1", "-1", "1-2-3", "0-", "0-999999999", "1 2"}) {
    EXPECT_FALSE(ParseCpuList(text)) << text;
  }
}

TEST(CpuListTest, AllowedCpusAreTheAffinityMask) {
  cpu_set_t original;
  ASSERT_EQ(sched_getaffinity(0, sizeof original, &original), 0);
  EXPECT_EQ(AllowedCpus().size(), static_cast<std::size_t>(CPU_COUNT(&original)));

  const int cpu = *AllowedCpus().rbegin();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(AllowedCpus(), CpuList{cpu});
  ASSERT_EQ(sched_setaffinity(0, sizeof original, &original), 0);
}

}  // namespace
}  // namespace muster::launcher
