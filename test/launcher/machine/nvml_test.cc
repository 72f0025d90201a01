#include "launcher/machine/nvml.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

constexpr char kFakeNvml[] = "test/launcher/machine/libfake_nvml.so";

// A machine's files in a temporary directory.
class NvmlTest : public testing::Test {
 protected:
  NvmlTest() {
    std::filesystem::create_directories(sources_.device_dir);
    std::filesystem::create_directories(sources_.driver_dir);
  }
  ~NvmlTest() override { unsetenv("FAKE_NVML_BROKEN"); }

  void AddNode(const std::string& name) { temp_.Write("dev/" + name, ""); }
  void AddInformation(const std::string& bus_id, const std::string& uuid, int minor) {
    std::filesystem::create_directories(sources_.driver_dir + "/" + bus_id);
    temp_.Write("gpus/" + bus_id + "/information",
                "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 35\nGPU UUID: \t " + uuid +
                    "\nBus Type: \t PCIe\nBus Location: \t " + bus_id + "\nDevice Minor: \t " +
                    std::to_string(minor) + "\nGPU Excluded:\t No\n");
  }

  const test::TempDir temp_;
  GpuSources sources_ = {.library = "libthere-is-none.so",
                         .device_dir = temp_.path() + "/dev",
                         .driver_dir = temp_.path() + "/gpus"};
};

TEST_F(NvmlTest, NvmlTellsAllOfDevicesThatMayBeOpened) {
  AddNode("nvidia0");
  sources_.library = kFakeNvml;
  const std::vector<GpuDevice> expected = {
      {.index = 0, .uuid = "GPU-aaaa1111-0000", .pci_bus_id = "0000:3b:00.0", .minor = 1},
      {.index = 1,
       .uuid = "GPU-aaaa3333-0000",
       .mig_uuids = {"MIG-cccc4444-0000", "MIG-cccc5555-0000"},
       .pci_bus_id = "10000:86:00.0",
       .minor = 0}};
  EXPECT_EQ(ListGpus(sources_), (GpuList{expected, ""}));
  EXPECT_EQ(ListGpus(sources_), (GpuList{expected, ""})) << "the second time";
}

TEST_F(NvmlTest, NothingIsLoadedWhereThereIsNoDeviceNode) {
  AddNode("nvidiactl");
  AddNode("nvidia-uvm");
  AddNode("nvidia0.old");
  sources_.library = kFakeNvml;
  EXPECT_EQ(ListGpus(sources_), GpuList());
  EXPECT_EQ(CountGpuNodes(sources_), 0);
}

TEST_F(NvmlTest, WithoutNvmlTheDriversFilesTell) {
  for (const char* name : {"nvidiactl", "nvidia0", "nvidia1", "nvidia10"}) AddNode(name);
  AddInformation("0000:86:00.0", "GPU-bbbb", 0);
  AddInformation("0000:3b:00.0", "GPU-aaaa", 10);
  AddInformation("0000:af:00.0", "GPU-" + std::string(8, '?') + "-" + std::string(4, '?'), 1);
  AddInformation("0000:d8:00.0", "GPU-another-containers", 7);
  EXPECT_EQ(ListGpus(sources_).gpus,
            (std::vector<GpuDevice>{
                {.index = 0, .uuid = "GPU-aaaa", .pci_bus_id = "0000:3b:00.0", .minor = 10},
                {.index = 1, .uuid = "GPU-bbbb", .pci_bus_id = "0000:86:00.0", .minor = 0},
                {.index = 2, .uuid = "", .pci_bus_id = "0000:af:00.0", .minor = 1}}));
  EXPECT_EQ(CountGpuNodes(sources_), 3);
}

// A driver that did not match its library was not reported: workers failed without an explanation.
TEST_F(NvmlTest, NvmlThatRefusesToWorkIsAsGoodAsNoneAndSaysWhy) {
  AddNode("nvidia3");
  AddInformation("0000:3b:00.0", "GPU-aaaa", 3);
  setenv("FAKE_NVML_BROKEN", "1", 1);
  sources_.library = kFakeNvml;
  EXPECT_EQ(ListGpus(sources_).gpus,
            (std::vector<GpuDevice>{
                {.index = 0, .uuid = "GPU-aaaa", .pci_bus_id = "0000:3b:00.0", .minor = 3}}));
  EXPECT_EQ(ListGpus(sources_).trouble, std::string(kFakeNvml) +
                                            " does not start: Driver/library version mismatch "
                                            "(NVML error 18)");
  sources_.library = "libthere-is-none.so";
  EXPECT_EQ(ListGpus(sources_).trouble, "") << "as in containers that may only compute";
}

TEST_F(NvmlTest, ADeviceThatIsLostIsToldOf) {
  AddNode("nvidia0");
  sources_.library = kFakeNvml;
  setenv("FAKE_NVML_LOST", "0", 1);
  const GpuList list = ListGpus(sources_);
  unsetenv("FAKE_NVML_LOST");
  ASSERT_EQ(list.gpus.size(), 1u);
  EXPECT_EQ(list.gpus[0].uuid, "GPU-aaaa3333-0000");
  EXPECT_EQ(list.trouble, "device 0 of 3 does not answer: GPU is lost (NVML error 15)");
}

TEST_F(NvmlTest, DeviceNodesAloneAreCounted) {
  AddNode("nvidia2");
  AddNode("nvidia0");
  EXPECT_EQ(ListGpus(sources_).gpus,
            (std::vector<GpuDevice>{{.index = 0, .minor = 0}, {.index = 1, .minor = 2}}));
}

TEST(SysfsBusIdTest, NvmlsAddressesBecomeTheKernels) {
  EXPECT_EQ(SysfsBusId("00000000:3B:00.0"), "0000:3b:00.0");
  EXPECT_EQ(SysfsBusId("0000:3b:00.0"), "0000:3b:00.0");
  EXPECT_EQ(SysfsBusId("00010000:01:00.0"), "10000:01:00.0");
  EXPECT_EQ(SysfsBusId(""), "");
}

}  // namespace
}  // namespace muster::launcher
