// Tries the modes on one simulated machine: two sockets with two NUMA nodes each; a node has four
// cores of two hardware threads (CPU n and n + 16), and two core complexes of two cores.
#include "launcher/machine/numa.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

NumaTopology TwoSockets() {
  NumaTopology topology;
  for (int cpu = 0; cpu < 32; ++cpu) {
    const int core = cpu % 16;
    topology[cpu] = {.node = core / 4, .package = core / 8, .core = core, .complex = core / 2 * 2};
  }
  return topology;
}

CpuList All(const NumaTopology& topology) {
  CpuList cpus;
  for (const auto& [cpu, place] : topology) cpus.insert(cpu);
  return cpus;
}

// "0-3,16-19 | 4-7" for two workers, or the error.
std::string Bound(NumaMode mode, int nproc, const std::vector<int>& gpu_nodes,
                  const std::string& allowed = "0-31") {
  const auto lists = BindWorkers(mode, nproc, gpu_nodes, TwoSockets(), *ParseCpuList(allowed));
  if (!lists.ok()) return std::string(lists.status().message());
  return absl::StrJoin(*lists, " | ", [](std::string* out, const CpuList& cpus) {
    out->append(PrintCpuList(cpus));
  });
}

struct Case {
  int nproc;
  std::vector<int> gpu_nodes;
  const char* allowed;
  const char* bound;
};

TEST(NumaBindingTest, NodeGivesAllCpusOfTheGpusNode) {
  const Case cases[] = {
      {2, {0, 3}, "0-31", "0-3,16-19 | 12-15,28-31"},
      {2, {1, 1}, "0-31", "4-7,20-23 | 4-7,20-23"},
      {1, {2, 0}, "0-31", "8-11,24-27"},      // a visible GPU without a worker
      {2, {0, 3}, "2-13", "2-3 | 12-13"},     // taskset
      {2, {0, 3}, "0-15,90", "0-3 | 12-15"},  // an allowed CPU that is offline
  };
  for (const Case& test : cases) {
    EXPECT_EQ(Bound(NumaMode::kNode, test.nproc, test.gpu_nodes, test.allowed), test.bound);
  }
}

TEST(NumaBindingTest, SocketAddsTheOtherNodesOfTheSocket) {
  EXPECT_EQ(Bound(NumaMode::kSocket, 2, {1, 2}), "0-7,16-23 | 8-15,24-31");
  EXPECT_EQ(Bound(NumaMode::kSocket, 1, {1}, "0-3,12"), "0-3");
}

TEST(NumaBindingTest, ExclusiveSplitsTheNodesCoresAmongItsGpus) {
  const Case cases[] = {
      {1, {0}, "0-31", "0-3,16-19"},
      {2, {0, 0}, "0-31", "0-1,16-17 | 2-3,18-19"},
      // The first GPUs get the remaining cores.
      {3, {0, 0, 0}, "0-31", "0-1,16-17 | 2,18 | 3,19"},
      {4, {1, 0, 1, 0}, "0-31", "4-5,20-21 | 0-1,16-17 | 6-7,22-23 | 2-3,18-19"},
      // A GPU without a worker keeps its cores.
      {1, {0, 0}, "0-31", "0-1,16-17"},
      // A core with one allowed hardware thread counts as a core.
      {2, {0, 0}, "0,2,16-17", "0,16-17 | 2"},
  };
  for (const Case& test : cases) {
    EXPECT_EQ(Bound(NumaMode::kExclusive, test.nproc, test.gpu_nodes, test.allowed), test.bound);
  }
}

TEST(NumaBindingTest, CoreComplexesGoRoundAmongTheNodesGpus) {
  EXPECT_EQ(Bound(NumaMode::kCoreComplex, 3, {0, 0, 0}), "0-1,16-17 | 2-3,18-19 | 0-1,16-17");
  EXPECT_EQ(Bound(NumaMode::kCoreComplex, 2, {0, 0}, "0,2-3"), "2-3 | 0") << "the larger first";
  EXPECT_EQ(Bound(NumaMode::kCoreComplex, 2, {3, 0}), "12-13,28-29 | 0-1,16-17");
}

TEST(NumaBindingTest, WithoutGpusWorkersSpreadOverTheNodesInBlocks) {
  EXPECT_EQ(Bound(NumaMode::kNode, 1, {}), "0-3,16-19");
  EXPECT_EQ(Bound(NumaMode::kNode, 2, {}), "0-3,16-19 | 8-11,24-27");
  EXPECT_EQ(Bound(NumaMode::kSocket, 2, {}), "0-7,16-23 | 8-15,24-31");
  EXPECT_EQ(Bound(NumaMode::kExclusive, 8, {}),
            "0-1,16-17 | 2-3,18-19 | 4-5,20-21 | 6-7,22-23 | 8-9,24-25 | 10-11,26-27 | "
            "12-13,28-29 | 14-15,30-31");
  EXPECT_EQ(Bound(NumaMode::kCoreComplex, 4, {}, "0-7,16-23"),
            "0-1,16-17 | 2-3,18-19 | 4-5,20-21 | 6-7,22-23");
  EXPECT_EQ(Bound(NumaMode::kNode, 2, {}, "12-13"), "12-13 | 12-13") << "on the nodes it may use";
}

TEST(NumaBindingTest, WhatCannotBeDoneIsSaidInOneSentence) {
  EXPECT_EQ(Bound(NumaMode::kExclusive, 5, {0, 0, 0, 0, 0}),
            "--numa-binding=exclusive needs a core for each of the 5 GPUs on NUMA node 0, which "
            "has 4 that this process may use; choose another mode");
  EXPECT_EQ(Bound(NumaMode::kExclusive, 3, {}, "4-5"),
            "--numa-binding=exclusive needs a core for each of the 3 workers on NUMA node 1, which "
            "has 2 that this process may use; choose another mode");
  EXPECT_EQ(Bound(NumaMode::kNode, 2, {0, 3}, "0-3"),
            "--numa-binding finds no CPU for local rank 1: none of NUMA node 3, where its GPU is, "
            "is among those this process may use (0-3); widen its affinity or leave the binding "
            "out");
  EXPECT_EQ(Bound(NumaMode::kNode, 3, {0, 3}),
            "--numa-binding places each worker by its GPU, but local rank 2 has none: 3 workers, 2 "
            "visible GPUs; start fewer, or set CUDA_VISIBLE_DEVICES= for a job on CPUs");
  EXPECT_EQ(Bound(NumaMode::kNode, 1, {}, "77"),
            "--numa-binding finds no CPU: none that this process may use (77) is online");
}

TEST(NumaBindingTest, MachineOfTwoThousandCpusIsSplit) {
  NumaTopology topology;
  for (int cpu = 0; cpu < 2000; ++cpu) {
    topology[cpu] = {.node = cpu / 1000, .package = cpu / 1000, .core = cpu, .complex = cpu};
  }
  const auto lists = BindWorkers(NumaMode::kExclusive, 4, {0, 0, 1, 1}, topology, All(topology));
  ASSERT_TRUE(lists.ok()) << lists.status();
  EXPECT_EQ(PrintCpuList(lists->back()), "1500-1999");
}

// A /sys where node 0 has no CPU and node 1 has all.
class NumaBindingHereTest : public testing::Test {
 protected:
  NumaBindingHereTest() {
    const int highest = *AllowedCpus().rbegin();
    Write("devices/system/cpu/online", absl::StrCat("0-", highest));
    Write("devices/system/node/node0/cpulist", "");
    Write("devices/system/node/node1/cpulist", absl::StrCat("0-", highest));
    Write("bus/pci/devices/0000:01:00.0/numa_node", "0");
    Write("bus/pci/devices/0000:02:00.0/numa_node", "1");
  }
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(
        std::filesystem::path(temp_.path() + "/" + name).parent_path());
    temp_.Write(name, text + "\n");
  }

  const test::TempDir temp_;
  const std::vector<GpuDevice> gpus_ = {
      {.index = 0, .uuid = "GPU-a", .pci_bus_id = "0000:01:00.0"},
      {.index = 1, .uuid = "GPU-b", .mig_uuids = {"MIG-b"}, .pci_bus_id = "0000:02:00.0"},
      {.index = 2, .uuid = "GPU-c"}};
};

TEST_F(NumaBindingHereTest, LocalRankHasTheDeviceThatCudaVisibleDevicesSays) {
  for (const char* visible : {"1", "GPU-b,GPU-a", "MIG-b"}) {
    const auto lists = BindWorkersHere(NumaMode::kNode, 1, {{"CUDA_VISIBLE_DEVICES", visible}},
                                       gpus_, temp_.path());
    ASSERT_TRUE(lists.ok()) << visible << ": " << lists.status();
    EXPECT_EQ(*lists, std::vector<CpuList>{AllowedCpus()}) << visible;
  }
  // Node 0 has no CPU.
  EXPECT_FALSE(
      BindWorkersHere(NumaMode::kNode, 1, {{"CUDA_VISIBLE_DEVICES", "0,1"}}, gpus_, temp_.path())
          .ok());
}

TEST_F(NumaBindingHereTest, JobOnCpusNeedsNoGpu) {
  for (const Environment& environment :
       {Environment(), Environment{{"CUDA_VISIBLE_DEVICES", "4,5"}}}) {
    const auto lists = BindWorkersHere(NumaMode::kNode, 1, environment, {}, temp_.path());
    ASSERT_TRUE(lists.ok()) << lists.status();
    EXPECT_EQ(*lists, std::vector<CpuList>{AllowedCpus()});
  }
}

TEST_F(NumaBindingHereTest, DeviceWithoutPciAddressIsAnError) {
  EXPECT_EQ(
      BindWorkersHere(NumaMode::kNode, 1, {{"CUDA_VISIBLE_DEVICES", "2"}}, gpus_, temp_.path())
          .status()
          .message(),
      "--numa-binding cannot find where device 2 is: neither NVML nor /proc/driver/nvidia "
      "gives its PCI address");
}

}  // namespace
}  // namespace muster::launcher
