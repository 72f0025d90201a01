#include "launcher/machine/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Strings = std::vector<std::string>;

// The third is split into two instances.
const std::vector<GpuDevice> kGpus = {
    {.index = 0, .uuid = "GPU-aa11-0", .pci_bus_id = "0000:01:00.0"},
    {.index = 1, .uuid = "GPU-aa22-0", .pci_bus_id = "0000:02:00.0"},
    {.index = 2, .uuid = "GPU-bb33-0", .mig_uuids = {"MIG-cc44-0", "MIG-cc55-0"}},
    {.index = 3, .uuid = "GPU-bb44-0", .pci_bus_id = "0000:04:00.0"}};
// From device nodes alone.
const std::vector<GpuDevice> kNodesOnly = {{.index = 0}, {.index = 1}};

Environment Visible(const std::string& list) {
  return {{"CUDA_VISIBLE_DEVICES", list}};
}

struct VisibleCase {
  const char* list;
  Strings left;
};

TEST(VisibleDevicesTest, CudasRulesHold) {
  const VisibleCase cases[] = {
      {"", {}},
      {" ", {}},
      {"3,0", {"3", "0"}},
      {" 2 , 3 ", {"2", "3"}},
      {"0,1,", {"0", "1"}},
      // An entry that names no device hides all entries after it.
      {"-1", {}},
      {"1,-1,2", {"1"}},
      {"0,4,1", {"0"}},
      {",0", {}},
      {"0,,1", {"0"}},
      {"none", {}},
      {"NoDevFiles", {}},
      {"0,99999999999,1", {"0"}},
      // Parsed as by strtoul().
      {"1gpu2,+2ampere", {"1", "2"}},
      // Named twice: no device at all.
      {"0,1,0", {}},
      {"0,00", {}},
      {"GPU-bb3,GPU-bb33", {}},
      // UUIDs, also shortened.
      {"GPU-bb33-0,GPU-aa2", {"GPU-bb33-0", "GPU-aa2"}},
      {"GPU-aa", {}},
      {"GPU-bb33,GPU-dd,GPU-aa1", {"GPU-bb33"}},
      {"MIG-cc55,MIG-cc4", {"MIG-cc55", "MIG-cc4"}},
      {"MIG-cc55,MIG-dd", {"MIG-cc55"}},
      {"MIG-cc", {}},
      {"MIG-GPU-aa11-0/1/0", {"MIG-GPU-aa11-0/1/0"}},
      // The first entry determines the kind of the list.
      {"0,GPU-aa2", {"0"}},
      {"GPU-aa2,0", {"GPU-aa2"}},
      {"MIG-cc4,GPU-aa2", {"MIG-cc4"}},
  };
  for (const VisibleCase& test : cases) {
    EXPECT_EQ(VisibleDevices(Visible(test.list), kGpus), test.left) << test.list;
  }
}

TEST(VisibleDevicesTest, UnsetLeavesAll) {
  EXPECT_THAT(VisibleDevices({}, kGpus), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(VisibleDevices({}, {}), IsEmpty());
}

TEST(VisibleDevicesTest, WhatCannotBeLookedUpCounts) {
  EXPECT_THAT(VisibleDevices(Visible("GPU-x,GPU-y"), kNodesOnly), ElementsAre("GPU-x", "GPU-y"));
  EXPECT_THAT(VisibleDevices(Visible("MIG-x,MIG-y"), kNodesOnly), ElementsAre("MIG-x", "MIG-y"));
  EXPECT_THAT(VisibleDevices(Visible("1,2"), kNodesOnly), ElementsAre("1"));
  EXPECT_THAT(VisibleDevices(Visible("4,5,-1"), {}), ElementsAre("4", "5"));
}

TEST(DeviceTest, EverySpellingFindsTheSameDevice) {
  EXPECT_EQ(FindDevice("3", kGpus), &kGpus[3]);
  EXPECT_EQ(FindDevice("GPU-bb4", kGpus), &kGpus[3]);
  EXPECT_EQ(FindDevice("MIG-cc5", kGpus), &kGpus[2]);
  for (const char* unknown : {"4", "GPU-bb", "GPU-x", "MIG-cc", "MIG-x", "", "-1"}) {
    EXPECT_EQ(FindDevice(unknown, kGpus), nullptr) << unknown;
  }
  EXPECT_EQ(CanonicalDevice("3", kGpus), "GPU-bb44-0");
  EXPECT_EQ(CanonicalDevice("GPU-bb4", kGpus), "GPU-bb44-0");
  EXPECT_EQ(CanonicalDevice("MIG-cc5", kGpus), "MIG-cc55-0");
  EXPECT_EQ(CanonicalDevice("1", kNodesOnly), "1");
  EXPECT_EQ(CanonicalDevice("MIG-x", {}), "MIG-x");
}

TEST(CheckDevicesTest, ListsAndRangesBecomeEntries) {
  EXPECT_THAT(*CheckDevices("2", kGpus, {}), ElementsAre("2"));
  EXPECT_THAT(*CheckDevices("3, 0-1", kGpus, {}), ElementsAre("3", "0", "1"));
  EXPECT_THAT(*CheckDevices("GPU-aa2,GPU-bb3", kGpus, {}), ElementsAre("GPU-aa2", "GPU-bb3"));
  EXPECT_THAT(*CheckDevices("MIG-cc4,MIG-cc5", kGpus, {}), ElementsAre("MIG-cc4", "MIG-cc5"));
  EXPECT_THAT(*CheckDevices("4-6", {}, {}), ElementsAre("4", "5", "6"));
}

TEST(CheckDevicesTest, DevicesMustBeAmongThoseThatAreLeft) {
  EXPECT_THAT(*CheckDevices("3", kGpus, Visible("GPU-bb4,GPU-aa1")), ElementsAre("3"));
  EXPECT_THAT(*CheckDevices("GPU-aa1", kGpus, Visible("0,1")), ElementsAre("GPU-aa1"));
  EXPECT_THAT(*CheckDevices("5,4", {}, Visible("4,5,6")), ElementsAre("5", "4"));
}

struct RefusedCase {
  const char* text;
  const char* visible;  // null: unset
  const char* message;
};

TEST(CheckDevicesTest, WhatIsWrongIsSaidInOnePhrase) {
  const RefusedCase cases[] = {
      {"", nullptr, "is empty; write a list such as 0-3,6"},
      {"0,4", nullptr, "names device 4, but this machine has devices 0 to 3 only"},
      {"GPU-zz", nullptr,
       "names device GPU-zz, which is not one device of this machine; `nvidia-smi -L` lists them"},
      {"GPU-aa", nullptr,
       "names device GPU-aa, which is not one device of this machine; `nvidia-smi -L` lists them"},
      {"0-2,1", nullptr, "names device 1 twice; each worker needs a device of its own"},
      {"GPU-aa1,0", nullptr, "names device 0 twice; each worker needs a device of its own"},
      {"0,GPU-aa2", nullptr,
       "mixes 0 and GPU-aa2, of which CUDA takes the first kind only; write all as indices or all "
       "as UUIDs"},
      {"3-1", nullptr, "has the range 3-1, which runs backwards; write 1-3"},
      {"0,one", nullptr,
       "has 'one', which is not a device; write indices, ranges, GPU- or MIG- UUIDs, such as "
       "0-3,6"},
      {"0,1", "1,2",
       "names device 0, which CUDA_VISIBLE_DEVICES=1,2 excludes; unset it or choose among its "
       "devices"},
      {"2", "1,-1,2",
       "names device 2, which CUDA_VISIBLE_DEVICES=1,-1,2 excludes; unset it or choose among its "
       "devices"},
  };
  for (const RefusedCase& test : cases) {
    const auto checked = CheckDevices(
        test.text, kGpus, test.visible == nullptr ? Environment() : Visible(test.visible));
    EXPECT_EQ(checked.status().message(), test.message) << test.text;
  }
  for (const char* text : {"0,", "-1", "1-", "-", "0--1", "0-1-2", "1.5", "0-99999999", "all"}) {
    EXPECT_FALSE(CheckDevices(text, {}, {}).ok()) << text;
  }
}

TEST(CheckDevicesTest, MachineWithoutGpusIsNoted) {
  EXPECT_EQ(DevicesNote("4,5", kGpus), "");
  EXPECT_EQ(DevicesNote("4,5", {}),
            "--devices=4,5 is not checked, because this machine has no NVIDIA device");
}

TEST(DeviceOfRankTest, EachRankHasItsEntryOfTheParentsList) {
  EXPECT_EQ(*DeviceOfRank(2, {}), "2");
  EXPECT_EQ(*DeviceOfRank(0, Visible("4, 5")), "4");
  EXPECT_EQ(*DeviceOfRank(1, Visible("4, 5")), "5");
  EXPECT_EQ(*DeviceOfRank(1, Visible("GPU-aa,MIG-bb/1/0")), "MIG-bb/1/0");
  EXPECT_EQ(DeviceOfRank(2, Visible("4, 5")).status().message(),
            "--virtual-local-rank finds no device for local rank 2: CUDA_VISIBLE_DEVICES=4, 5 "
            "names 2; name one for each worker");
  EXPECT_FALSE(DeviceOfRank(0, Visible("")).ok());
}

}  // namespace
}  // namespace muster::launcher
