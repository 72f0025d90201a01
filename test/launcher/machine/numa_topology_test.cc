#include "launcher/machine/numa.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

// A simulated /sys.
class NumaTopologyTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(
        std::filesystem::path(temp_.path() + "/" + name).parent_path());
    temp_.Write(name, text + "\n");
  }
  void AddCpu(int cpu, int package, const std::string& siblings) {
    const std::string topology = absl::StrCat("devices/system/cpu/cpu", cpu, "/topology/");
    Write(topology + "physical_package_id", absl::StrCat(package));
    Write(topology + "thread_siblings_list", siblings);
  }
  void AddCache(int cpu, int index, const std::string& type, int level, const std::string& shared) {
    const std::string cache = absl::StrCat("devices/system/cpu/cpu", cpu, "/cache/index", index);
    Write(cache + "/type", type);
    Write(cache + "/level", absl::StrCat(level));
    Write(cache + "/shared_cpu_list", shared);
  }

  const test::TempDir temp_;
};

TEST_F(NumaTopologyTest, NodesSocketsCoresAndComplexesAreRead) {
  Write("devices/system/cpu/online", "0-3");
  Write("devices/system/node/node0/cpulist", "0,2");
  Write("devices/system/node/node8/cpulist", "1,3");
  Write("devices/system/node/node9/cpulist", "");  // memory only
  Write("devices/system/node/possible", "0-9");
  AddCpu(0, 0, "0,2");
  AddCpu(1, 1, "1,3");
  AddCpu(2, 0, "0,2");
  AddCpu(3, 1, "1,3");
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string pair = cpu % 2 == 0 ? "0,2" : "1,3";
    AddCache(cpu, 0, "Data", 1, absl::StrCat(cpu));
    AddCache(cpu, 1, "Unified", 3, pair);
    AddCache(cpu, 2, "Unified", 2, absl::StrCat(cpu));
    AddCache(cpu, 3, "Instruction", 4, "0-3");
  }
  EXPECT_EQ(*ReadNumaTopology(temp_.path()),
            (NumaTopology{{0, {.node = 0, .package = 0, .core = 0, .complex = 0}},
                          {1, {.node = 8, .package = 1, .core = 1, .complex = 1}},
                          {2, {.node = 0, .package = 0, .core = 0, .complex = 0}},
                          {3, {.node = 8, .package = 1, .core = 1, .complex = 1}}}));
}

TEST_F(NumaTopologyTest, OfflineCpusAreNotThere) {
  Write("devices/system/cpu/online", "0,2");
  Write("devices/system/cpu/cpu1/online", "0");
  Write("devices/system/node/node0/cpulist", "0,2");
  EXPECT_EQ(*ReadNumaTopology(temp_.path()),
            (NumaTopology{{0, {.core = 0, .complex = 0}}, {2, {.core = 2, .complex = 2}}}));
}

TEST_F(NumaTopologyTest, KernelWithoutNumaHasOneNode) {
  Write("devices/system/cpu/online", "0-1");
  AddCpu(0, -1, "0-1");
  AddCpu(1, -1, "0-1");
  EXPECT_EQ(*ReadNumaTopology(temp_.path()),
            (NumaTopology{{0, {.core = 0, .complex = 0}}, {1, {.core = 0, .complex = 1}}}));
}

TEST_F(NumaTopologyTest, CpusBeyondAThousandAreRead) {
  Write("devices/system/cpu/online", "0-1999");
  Write("devices/system/node/node0/cpulist", "0-999");
  Write("devices/system/node/node1/cpulist", "1000-1999");
  const auto topology = ReadNumaTopology(temp_.path());
  EXPECT_EQ(topology->size(), 2000u);
  EXPECT_EQ(topology->at(1999).node, 1);
}

TEST_F(NumaTopologyTest, TreeThatDoesNotTellIsAnError) {
  const std::string online = temp_.path() + "/devices/system/cpu/online";
  EXPECT_EQ(ReadNumaTopology(temp_.path()).status().message(),
            "read " + online + ": No such file or directory");
  Write("devices/system/cpu/online", "all");
  EXPECT_EQ(ReadNumaTopology(temp_.path()).status().message(),
            "read " + online + ": not a CPU list: all");
}

TEST_F(NumaTopologyTest, PciDevicesHaveANode) {
  Write("bus/pci/devices/0000:3b:00.0/numa_node", "1");
  Write("bus/pci/devices/0000:5e:00.0/numa_node", "-1");
  EXPECT_EQ(*NumaNodeOfPciDevice("0000:3b:00.0", temp_.path()), 1);
  EXPECT_EQ(*NumaNodeOfPciDevice("0000:5e:00.0", temp_.path()), 0);
  EXPECT_EQ(NumaNodeOfPciDevice("0000:86:00.0", temp_.path()).status().message(),
            "read " + temp_.path() +
                "/bus/pci/devices/0000:86:00.0/numa_node: No such file or directory");
}

TEST(ThisMachineTest, EveryAllowedCpuIsThere) {
  const auto topology = ReadNumaTopology();
  ASSERT_TRUE(topology.ok()) << topology.status();
  for (const int cpu : AllowedCpus()) EXPECT_EQ(topology->count(cpu), 1u) << cpu;
}

}  // namespace
}  // namespace muster::launcher
