// "--nproc-per-node=auto silently started a worker for each CPU of a node with eight accelerators."
#include "launcher/machine/devices.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

namespace fs = std::filesystem;

class AcceleratorsTest : public testing::Test {
 protected:
  // A device node, and its kernel driver.
  void Add(const std::string& node, const std::string& device_class = "",
           const std::string& driver = "") {
    fs::create_directories(fs::path(dir_.Path("dev/" + node)).parent_path());
    dir_.Write("dev/" + node, "");
    if (driver.empty()) return;
    const std::string device =
        dir_.Path("sys/class/" + device_class + "/" + fs::path(node).filename().string()) +
        "/device";
    fs::create_directories(device);
    fs::create_symlink("../../bus/pci/drivers/" + driver, device + "/driver");
  }

  std::optional<Accelerator> Find(const Environment& environment = {}) const {
    return FindAccelerator(environment,
                           {.device_dir = dir_.Path("dev"), .sysfs = dir_.Path("sys")});
  }

  const test::TempDir dir_;
};

TEST_F(AcceleratorsTest, MachineWithCpusAloneHasNone) {
  EXPECT_EQ(Find(), std::nullopt);
  Add("null");
  Add("nvidiactl");
  Add("davinci_manager");
  Add("hlx");
  Add("dri/card0");
  EXPECT_EQ(Find({{"HIP_VISIBLE_DEVICES", "0"}}), std::nullopt);
}

TEST_F(AcceleratorsTest, AmdsAreCountedByTheirVariableOrTheirNodes) {
  Add("kfd");
  Add("dri/renderD128", "drm", "amdgpu");
  Add("dri/renderD129", "drm", "amdgpu");
  Add("dri/renderD130", "drm", "ast");
  EXPECT_EQ(Find(), (Accelerator{.kind = "AMD GPUs", .node = "/dev/kfd", .count = 2}));
  EXPECT_EQ(Find({{"HIP_VISIBLE_DEVICES", "0,1,2"}}),
            (Accelerator{.kind = "AMD GPUs",
                         .node = "/dev/kfd",
                         .count = 3,
                         .chosen_by = "HIP_VISIBLE_DEVICES=0,1,2"}));
  EXPECT_EQ(Find({{"ROCR_VISIBLE_DEVICES", "1"}})->count, 1);
}

TEST_F(AcceleratorsTest, WhatTheUserHasHiddenIsNotThere) {
  Add("kfd");
  EXPECT_EQ(Find({{"HIP_VISIBLE_DEVICES", ""}}), std::nullopt);
  EXPECT_EQ(Find({{"ROCR_VISIBLE_DEVICES", "-1"}}), std::nullopt);
}

TEST_F(AcceleratorsTest, OthersAreKnownByTheirDeviceNodes) {
  const struct {
    const char* node;
    const char* kind;
  } rows[] = {{"davinci0", "Ascend NPUs"},       {"hl0", "Gaudi accelerators"},
              {"neuron0", "Neuron devices"},     {"cambricon_dev0", "Cambricon MLUs"},
              {"mtgpu.0", "Moore Threads GPUs"}, {"accel0", "TPU chips"},
              {"accel/accel0", "accelerators"}};
  for (const auto& row : rows) {
    Add(row.node);
    EXPECT_EQ(Find(),
              (Accelerator{.kind = row.kind, .node = std::string("/dev/") + row.node, .count = 1}));
    fs::remove_all(dir_.Path("dev"));
  }
  for (const char* const sign : {"nvhost-gpu", "nvgpu", "dxg"}) {
    Add(sign);
    ASSERT_TRUE(Find().has_value()) << sign;
    EXPECT_EQ(Find()->node, std::string("/dev/") + sign);
    EXPECT_EQ(Find()->count, 0) << "it cannot be told";
    fs::remove_all(dir_.Path("dev"));
  }
}

TEST_F(AcceleratorsTest, IntelsAreToldFromTheGraphicsOfALaptop) {
  Add("dri/renderD128", "drm", "i915");
  EXPECT_EQ(Find(), std::nullopt);
  EXPECT_EQ(Find({{"ZE_AFFINITY_MASK", "0,1"}})->count, 2);
  Add("dri/renderD129", "drm", "xe");
  EXPECT_EQ(Find(), (Accelerator{.kind = "Intel GPUs", .node = "/dev/dri/renderD129", .count = 1}));
}

TEST_F(AcceleratorsTest, NeuralProcessorOfALaptopIsNone) {
  Add("accel/accel0", "accel", "intel_vpu");
  Add("accel/accel1", "accel", "amdxdna");
  EXPECT_EQ(Find(), std::nullopt);
  Add("accel/accel2", "accel", "habanalabs");
  EXPECT_EQ(Find()->kind, "Gaudi accelerators");
}

TEST_F(AcceleratorsTest, DeviceBehindVfioIsATpuIfTheEnvironmentSaysSo) {
  Add("vfio/vfio");
  Add("vfio/0");
  EXPECT_EQ(Find(), std::nullopt) << "it may be a virtual machine's network card";
  EXPECT_EQ(Find({{"TPU_WORKER_ID", "0"}})->node, "/dev/vfio/0");
}

}  // namespace
}  // namespace muster::launcher
