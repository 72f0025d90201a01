#include "launcher/machine/gpu_health.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class GpuHealthTest : public testing::Test {
 protected:
  GpuHealthTest() {
    std::filesystem::create_directories(sources_.device_dir);
    std::filesystem::create_directories(sources_.driver_dir);
    temp_.Write("dev/nvidia0", "");
    temp_.Write("kmsg",
                "4,1,1,-;NVRM: Xid (PCI:0000:3b:00): 13, Graphics Exception\n"
                "4,2,2,-;NVRM: Xid (PCI:0000:99:00): 79, GPU has fallen off the bus.\n"
                "4,3,3,-;NVRM: Xid (PCI:0000:3b:00): 31, MMU Fault\n");
  }
  ~GpuHealthTest() override { unsetenv("FAKE_NVML_BROKEN"); }

  const test::TempDir temp_;
  const std::string log_ = temp_.path() + "/kmsg";
  GpuSources sources_ = {.library = "test/launcher/machine/libfake_nvml.so",
                         .device_dir = temp_.path() + "/dev",
                         .driver_dir = temp_.path() + "/gpus"};
};

TEST_F(GpuHealthTest, WhatNvmlAndTheKernelTell) {
  const GpuHealthReport report = ReadGpuHealth(sources_, log_);
  EXPECT_EQ(report.driver, "550.54.15");
  EXPECT_EQ(report.trouble, "");
  EXPECT_TRUE(report.log_readable);
  ASSERT_EQ(report.gpus.size(), 2u);

  const GpuHealth& fit = report.gpus[0];
  EXPECT_EQ(fit.gpu.index, 0);
  EXPECT_EQ(fit.gpu.pci_bus_id, "0000:3b:00.0");
  EXPECT_EQ(fit.name, "NVIDIA Fake");
  EXPECT_EQ(fit.memory_used, 3ull << 30);
  EXPECT_EQ(fit.memory_total, 80ull << 30);
  EXPECT_EQ(fit.temperature, 41u);
  EXPECT_EQ(fit.uncorrected_errors, 0u);
  EXPECT_THAT(fit.Faults(), IsEmpty());
  EXPECT_THAT(fit.Warnings(),
              ElementsAre("2 Xids in the kernel's log, the last: Xid 31 (MMU Fault)"));

  const GpuHealth& unfit = report.gpus[1];
  EXPECT_EQ(unfit.gpu.index, 1);
  EXPECT_EQ(unfit.memory_used, std::nullopt);
  EXPECT_THAT(unfit.Faults(), ElementsAre("3 uncorrected memory errors",
                                          "a repair of its memory waits for a reset"));
  EXPECT_THAT(unfit.Warnings(), ElementsAre("slowed by its temperature"));
}

TEST_F(GpuHealthTest, WithoutNvmlTheLogIsStillRead) {
  setenv("FAKE_NVML_BROKEN", "1", 1);
  std::filesystem::create_directories(sources_.driver_dir + "/0000:3b:00.0");
  temp_.Write("gpus/0000:3b:00.0/information",
              "Bus Location: \t 0000:3b:00.0\nDevice Minor: \t 0\n");
  const GpuHealthReport report = ReadGpuHealth(sources_, log_);
  EXPECT_THAT(report.trouble, testing::EndsWith("version mismatch (NVML error 18)"));
  ASSERT_EQ(report.gpus.size(), 1u);
  EXPECT_EQ(report.gpus[0].xids.size(), 2u);
  EXPECT_EQ(report.gpus[0].uncorrected_errors, std::nullopt);
}

TEST_F(GpuHealthTest, AMachineWithoutGpusIsNotAsked) {
  std::filesystem::remove(sources_.device_dir + "/nvidia0");
  const GpuHealthReport report = ReadGpuHealth(sources_, log_);
  EXPECT_TRUE(report.gpus.empty());
  EXPECT_EQ(report.trouble, "");
}

}  // namespace
}  // namespace muster::launcher
