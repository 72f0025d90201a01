#include "launcher/machine/gpu_health.h"

#include <fstream>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

TEST(ReadXidTest, LinesOfEveryDriver) {
  EXPECT_EQ(ReadXid("4,1873,88102345,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU "
                    "has fallen off the bus."),
            (Xid{"0000:3b:00.0", 79, 1234, "GPU has fallen off the bus."}));
  EXPECT_EQ(
      ReadXid("NVRM: Xid (PCI:0000:5E:00): 94, pid='<unknown>', name=<unknown>, Contained: SM"),
      (Xid{"0000:5e:00.0", 94, 0, "Contained: SM"}));
  EXPECT_EQ(ReadXid("NVRM: Xid (PCI:0000:01:00): 31, Ch 00000010, intr 10000000"),
            (Xid{"0000:01:00.0", 31, 0, "Ch 00000010, intr 10000000"}));
  EXPECT_EQ(ReadXid("NVRM: Xid (PCI:0000:01:00.1): 62"), (Xid{"0000:01:00.1", 62, 0, ""}));
}

TEST(ReadXidTest, OtherLinesAreNone) {
  for (const char* line :
       {"", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
        "NVRM: Xid (PCI:", "NVRM: Xid (PCI:0000:01:00",
        "NVRM: Xid (PCI:0000:01:00): ", "NVRM: Xid (PCI:0000:01:00): x", "Xid 79"}) {
    EXPECT_EQ(ReadXid(line), std::nullopt) << line;
  }
}

TEST(DescribeXidTest, NamesTheGpu) {
  EXPECT_EQ(Describe({"0000:3b:00.0", 79, 7, "GPU has fallen off the bus."}),
            "Xid 79 of GPU 0000:3b:00.0 (GPU has fallen off the bus.)");
  EXPECT_EQ(Describe({"0000:3b:00.0", 79, 0, ""}), "Xid 79 of GPU 0000:3b:00.0");
}

TEST(XidsBeforeTest, TheWorkersOwnComesFirst) {
  const std::vector<Xid> xids = {{"0000:3b:00.0", 13, 7, ""}, {"0000:5e:00.0", 79, 8, ""}};
  const std::string meanwhile = "; meanwhile the NVIDIA driver reported Xid 13 of GPU 0000:3b:00.0";
  EXPECT_EQ(XidsBefore({}, 7), "");
  EXPECT_EQ(XidsBefore({xids[0]}, 9), meanwhile);
  EXPECT_EQ(XidsBefore(xids, 8), ", after Xid 79 of GPU 0000:5e:00.0");
  EXPECT_EQ(XidsBefore(xids, 0), meanwhile + " and 1 more");
}

class KernelLogTest : public testing::Test {
 protected:
  void Add(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  static std::string Line(int number) {
    return "4,1,1,-;NVRM: Xid (PCI:0000:3b:00): " + std::to_string(number) + ", \n SUBSYSTEM=pci\n";
  }
  static std::vector<int> Numbers(const std::vector<Xid>& xids) {
    std::vector<int> numbers;
    for (const Xid& xid : xids) numbers.push_back(xid.number);
    return numbers;
  }

  const test::TempDir temp_;
  const std::string path_ = temp_.path() + "/kmsg";
};

TEST_F(KernelLogTest, FromItsOldestRecordOrFromNowOn) {
  Add(Line(13) + "6,2,2,-;usb 1-1: new device\n");
  KernelLog all(KernelLog::From::kOldest, path_);
  KernelLog later(KernelLog::From::kNow, path_);
  EXPECT_EQ(Numbers(all.ReadNew()), std::vector<int>{13});
  EXPECT_EQ(Numbers(later.ReadNew()), std::vector<int>());
  Add(Line(48) + Line(79));
  EXPECT_EQ(Numbers(all.ReadNew()), (std::vector<int>{48, 79}));
  EXPECT_EQ(Numbers(later.ReadNew()), (std::vector<int>{48, 79}));
  EXPECT_EQ(Numbers(later.ReadNew()), std::vector<int>());
}

TEST_F(KernelLogTest, LinesThatOneReadCutsApartAreWhole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += Line(i);
  Add(text);
  EXPECT_EQ(KernelLog(KernelLog::From::kOldest, path_).ReadNew().size(), 1000u);
}

TEST_F(KernelLogTest, ALogThatMayNotBeReadHasNone) {
  for (const std::string& path : {temp_.path() + "/none", std::string("/dev/zero")}) {
    KernelLog log(KernelLog::From::kOldest, path);
    EXPECT_FALSE(log.readable()) << path;
    EXPECT_TRUE(log.ReadNew().empty()) << path;
  }
}

// With any content: the device returns one record per read, and never blocks.
TEST(KernelLogDeviceTest, TheKernelsOwnIsReadToItsEnd) {
  KernelLog log(KernelLog::From::kOldest);
  if (!log.readable()) GTEST_SKIP() << "/dev/kmsg may not be read here";
  log.ReadNew();
  EXPECT_TRUE(log.ReadNew().empty());
}

}  // namespace
}  // namespace muster::launcher
