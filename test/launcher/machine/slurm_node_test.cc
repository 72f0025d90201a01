// Parsing scontrol's output about nodes.
#include "launcher/run/interruptions.h"

#include <string>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

// As printed by Slurm 22.05, shortened.
std::string Shown(const std::string& state, const std::string& reason = "") {
  return absl::StrCat(
      "NodeName=n2 Arch=x86_64 CoresPerSocket=1 \n   CPUAlloc=1 CPUEfctv=4 CPUTot=4 CPULoad=0.50\n"
      "   NodeAddr=10.78.0.2 NodeHostName=n2 Version=22.05.8\n   State=",
      state, " ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A\n   Partitions=all \n",
      reason.empty() ? "" : absl::StrCat("   Reason=", reason, " [root@2026-01-31T12:00:00]\n"),
      "\n");
}

TEST(SlurmNodeTest, DrainedNodesAreToldFromOthers) {
  for (const char* state : {"IDLE", "MIXED", "ALLOCATED*", "MIXED+PLANNED", "DOWN",
                            "MIXED+REBOOT_REQUESTED", "MIXED+MAINTENANCE", "IDLE+CLOUD"}) {
    EXPECT_EQ(WhySlurmDrains(Shown(state, "x")), std::nullopt) << state;
  }
  for (const char* state :
       {"MIXED+DRAIN", "ALLOCATED+DRAIN", "ALLOCATED+DRAIN*", "DRAINING", "IDLE+CLOUD+DRAIN$"}) {
    EXPECT_EQ(WhySlurmDrains(Shown(state)), "Slurm drains it") << state;
  }
  EXPECT_EQ(WhySlurmDrains(Shown("MIXED+FAIL")), "Slurm expects it to fail");
}

TEST(SlurmNodeTest, TheReasonIsSaidAndControlsNobodysTerminal) {
  EXPECT_EQ(WhySlurmDrains(Shown("MIXED+DRAIN", "bad fan")), "Slurm drains it (bad fan)");
  EXPECT_EQ(WhySlurmDrains(Shown("MIXED+FAIL", "bad fan")), "Slurm expects it to fail (bad fan)");
  const auto why = WhySlurmDrains(Shown("MIXED+DRAIN", "\x1b[31mred"));
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(why->find('\x1b'), std::string::npos) << *why;
}

TEST(SlurmNodeTest, WhatIsNoneOfScontrolsSaysNothing) {
  EXPECT_EQ(WhySlurmDrains(""), std::nullopt);
  EXPECT_EQ(WhySlurmDrains("Node n2 not found\n"), std::nullopt);
  EXPECT_EQ(WhySlurmDrains("State="), std::nullopt);
}

}  // namespace
}  // namespace muster::launcher
