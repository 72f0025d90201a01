// Findings from a machine's facts, without a machine that has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/doctor/machine.h"
#include "launcher/doctor/network.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// "error: limits: a process may ..." for each finding.
std::vector<std::string> Lines(const Report& report) {
  std::vector<std::string> lines;
  for (const Finding& one : report.findings) {
    EXPECT_FALSE(one.why.empty()) << one.what;
    EXPECT_FALSE(one.remedy.empty()) << one.what;
    lines.push_back(std::string(SeverityWord(one.severity)) + ": " + one.subject + ": " + one.what);
  }
  return lines;
}

template <typename... Facts>
std::vector<std::string> FindingsOf(const Facts&... facts) {
  Report report;
  Judge(facts..., report);
  return Lines(report);
}

TEST(SharedMemoryFindingsTest, WhatContainersGetUnlessAskedIsTooLittle) {
  SharedMemory facts{.path = "/dev/shm", .total = 64 << 20, .free = 64 << 20};
  EXPECT_THAT(FindingsOf(facts),
              ElementsAre("error: shared memory: /dev/shm has 64 MiB, of which 64 MiB are free."));
  facts.total = facts.free = 512 << 20;
  EXPECT_THAT(FindingsOf(facts), ElementsAre(HasSubstr("warning: shared memory: /dev/shm")));
  facts.total = facts.free = 16 * kGiB;
  EXPECT_THAT(FindingsOf(facts), IsEmpty());
  facts.trouble = "Read-only file system";
  EXPECT_THAT(FindingsOf(facts), ElementsAre("error: shared memory: no file can be made in "
                                             "/dev/shm: Read-only file system."));
}

TEST(LimitsFindingsTest, EachLimitIsJudgedByWhomItHolds) {
  EXPECT_THAT(FindingsOf(Limits{}), IsEmpty());
  EXPECT_THAT(FindingsOf(Limits{.open_files = {1024, 1 << 20}}), IsEmpty());
  EXPECT_THAT(FindingsOf(Limits{.open_files = {1024, 1024}}),
              ElementsAre("warning: limits: a process may have 1024 files open, and raise that to "
                          "1024 (RLIMIT_NOFILE)."));
  EXPECT_THAT(FindingsOf(Limits{.open_files = {64, 1 << 20}}),
              ElementsAre(HasSubstr("error: limits: a process may have 64 files open")));
  Limits few{.processes = {200, 200}, .locked_memory = {8 << 20, 8 << 20}};
  EXPECT_THAT(FindingsOf(few), ElementsAre(HasSubstr("error: limits: this user may have 200")));
  few.has_rdma = true;
  EXPECT_THAT(FindingsOf(few),
              ElementsAre(HasSubstr("(RLIMIT_NPROC)"), HasSubstr("may lock 8 MiB of memory")));
  few.is_root = true;
  EXPECT_THAT(FindingsOf(few), IsEmpty());
  EXPECT_THAT(FindingsOf(Limits{.file_size = {kGiB, kGiB}, .address_space = {kGiB, kGiB}}),
              ElementsAre(HasSubstr("a file may have 1 GiB"), HasSubstr("(RLIMIT_AS)")));
}

TEST(ControlGroupFindingsTest, WhatIsLeftCounts) {
  ControlGroup group{.name = "/job", .is_delegated = true, .allowed_cpus = 8};
  EXPECT_THAT(FindingsOf(group), IsEmpty());
  group.memory_max = 4 * kGiB;
  group.memory_used = kGiB;
  EXPECT_THAT(FindingsOf(group), IsEmpty());
  group.memory_used = 4 * kGiB - (100 << 20);
  EXPECT_THAT(FindingsOf(group),
              ElementsAre(HasSubstr("allows 4 GiB of memory, of which 100 MiB are left")));
  group.memory_max.reset();
  group.cpus = 1.5;
  EXPECT_THAT(FindingsOf(group), ElementsAre("warning: control group: the control group allows the "
                                             "time of 1.5 CPUs, while processes see 8."));
  group.cpus.reset();
  group.pids_max = 100;
  group.pids_used = 40;
  EXPECT_THAT(FindingsOf(group), ElementsAre(HasSubstr("error: control group: the control group "
                                                       "allows 100 processes and threads, of "
                                                       "which 60 are left")));
  group.pids_max.reset();
  group.is_delegated = false;
  EXPECT_THAT(FindingsOf(group),
              ElementsAre("note: control group: no control group can be made below /job."));
}

TEST(NamesFindingsTest, WhereTheOwnNameLeads) {
  Names names{.host_name = "node0", .addresses = {"10.0.0.7"}, .own = {"10.0.0.7"}};
  EXPECT_THAT(FindingsOf(names), IsEmpty());
  names.addresses = {"127.0.1.1"};
  EXPECT_THAT(
      FindingsOf(names),
      ElementsAre("warning: names: this machine's own name resolves to 127.0.1.1, which only "
                  "this machine can reach."));
  names.addresses = {"10.0.0.9"};
  EXPECT_THAT(
      FindingsOf(names),
      ElementsAre("error: names: this machine's own name, node0, resolves to 10.0.0.9, which "
                  "no interface of this machine has."));
  names.addresses = {};
  names.trouble = "Name or service not known";
  names.took = std::chrono::seconds(5);
  names.has_localhost = false;
  EXPECT_THAT(FindingsOf(names),
              ElementsAre(HasSubstr("own name does not resolve (Name or service"),
                          HasSubstr("took 5 s"), HasSubstr("localhost does not resolve")));
}

TEST(ClockFindingsTest, ADayLongAgo) {
  ClockFacts clock{.now = std::chrono::system_clock::from_time_t(86400), .is_synchronized = true};
  EXPECT_THAT(FindingsOf(clock),
              ElementsAre("error: clock: the clock says 1970-01-02 00:00:00 UTC."));
  clock.now = std::chrono::system_clock::from_time_t(1800000000);
  EXPECT_THAT(FindingsOf(clock), IsEmpty());
  clock.is_synchronized = false;
  clock.source = "hpet";
  EXPECT_THAT(FindingsOf(clock),
              ElementsAre(HasSubstr("note: clock: the kernel says that the clock is not"),
                          HasSubstr("reads the time from hpet")));
}

TEST(NcclFindingsTest, NamesMeanWhatNcclTakesThemFor) {
  EXPECT_TRUE(IsMeant("eth", "eth0", -1));
  EXPECT_FALSE(IsMeant("=eth", "eth0", -1));
  EXPECT_TRUE(IsMeant("=ib0,eth0", "eth0", -1));
  EXPECT_FALSE(IsMeant("^eth", "eth0", -1));
  EXPECT_TRUE(IsMeant("^=eth", "eth0", -1));
  EXPECT_TRUE(IsMeant("mlx5_0:2", "mlx5_0", 2));
  EXPECT_FALSE(IsMeant("mlx5_0:2", "mlx5_0", 1));
  EXPECT_TRUE(IsMeant("", "eth0", -1));
}

TEST(NcclFindingsTest, VariablesAreHeldAgainstTheMachine) {
  const Networks networks{.interfaces = {{"eth0", true, false, true},
                                         {"eth1", false, false, true},
                                         {"lo", true, true, true}},
                          .rdma = {{"mlx5_0", 1, "4: ACTIVE"}, {"mlx5_1", 1, "1: DOWN"}}};
  const auto of = [&](const Environment& environment, bool has_peers = true) {
    return FindingsOf(networks, environment, has_peers);
  };
  const std::string down = "warning: NCCL: port mlx5_1:1 is not active (1: DOWN).";
  EXPECT_THAT(of({}), ElementsAre(down));
  EXPECT_THAT(of({{"NCCL_SOCKET_IFNAME", "eth"}, {"NCCL_IB_HCA", "=mlx5_0"}}), IsEmpty());
  EXPECT_THAT(of({{"NCCL_SOCKET_IFNAME", "eth1"}, {"NCCL_IB_HCA", "mlx5_0"}}),
              ElementsAre("error: NCCL: NCCL_SOCKET_IFNAME=eth1 matches no interface here that is "
                          "up and has an address."));
  EXPECT_THAT(of({{"NCCL_SOCKET_IFNAME", "lo"}, {"NCCL_IB_HCA", "mlx5_0"}}),
              ElementsAre("error: NCCL: NCCL_SOCKET_IFNAME=lo matches loopback only."));
  EXPECT_THAT(of({{"NCCL_SOCKET_IFNAME", "lo"}, {"NCCL_IB_HCA", "mlx5_0"}}, false), IsEmpty());
  EXPECT_THAT(of({{"NCCL_IB_HCA", "mlx4"}}),
              ElementsAre(HasSubstr("error: NCCL: NCCL_IB_HCA=mlx4 matches no active port")));
  EXPECT_THAT(of({{"NCCL_IB_HCA", "mlx5_0"}, {"NCCL_IB_DISABLE", "1"}}),
              ElementsAre(HasSubstr("warning: NCCL: NCCL_IB_DISABLE is set")));
  EXPECT_THAT(of({{"NCCL_IB_HCA", "mlx5_0"}, {"GLOO_SOCKET_IFNAME", "eth0,eth1"}}),
              ElementsAre(HasSubstr("error: Gloo: GLOO_SOCKET_IFNAME=eth0,eth1 names eth1, ")));
  EXPECT_THAT(
      of({{"NCCL_IB_HCA", "mlx5_0"},
          {"NCCL_P2P_DISABLE", "1"},
          {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"},
          {"NCCL_TOPO_FILE", "/nonexistent/topo.xml"}}),
      ElementsAre(HasSubstr("NCCL_P2P_DISABLE=1"), HasSubstr("TORCH_NCCL_ASYNC_ERROR_HANDLING=0"),
                  HasSubstr("NCCL_TOPO_FILE=/nonexistent/topo.xml: there is no such")));
}

// The kernel's tree of InfiniBand devices.
TEST(NcclFindingsTest, PortsAreReadFromTheKernelsTree) {
  const test::TempDir sys;
  std::filesystem::create_directories(sys.Path("mlx5_0/ports/1"));
  sys.Write("mlx5_0/ports/1/state", "4: ACTIVE\n");
  const Networks networks = ReadNetworks(sys.path());
  ASSERT_EQ(networks.rdma.size(), 1u);
  EXPECT_EQ(networks.rdma[0].device, "mlx5_0");
  EXPECT_EQ(networks.rdma[0].state, "4: ACTIVE");
  EXPECT_THAT(networks.interfaces, testing::Contains(testing::Field(&Interface::name, "lo")));
}

TEST(DirectoryFindingsTest, EachUseHasItsOwnNeeds) {
  Directory directory{.use = DirectoryUse::kCheckpoints,
                      .path = "/ckpt",
                      .existing = "/ckpt",
                      .type = "ext4",
                      .total = 100 * kGiB,
                      .free = 50 * kGiB,
                      .files_total = 1000000,
                      .files_free = 500000};
  EXPECT_THAT(FindingsOf(directory, false), IsEmpty());
  EXPECT_THAT(FindingsOf(directory, true),
              ElementsAre("note: checkpoints: /ckpt is this host's own (ext4)."));
  directory.is_network = true;
  EXPECT_THAT(FindingsOf(directory, true), IsEmpty());
  directory.free = 5 << 20;
  directory.files_free = 3;
  directory.took = std::chrono::seconds(7);
  EXPECT_THAT(
      FindingsOf(directory, true),
      ElementsAre("warning: checkpoints: /ckpt is nearly full: ext4, 5 MiB of 100 GiB free.",
                  "warning: checkpoints: /ckpt can take 3 more files (ext4 has 1000000).",
                  "warning: checkpoints: to write a page to /ckpt took 7 s."));
  directory.trouble = "No space left on device";
  EXPECT_THAT(FindingsOf(directory, true),
              ElementsAre(HasSubstr("error: checkpoints: nothing can be written to /ckpt: No space "
                                    "left on device")));
  directory = {.use = DirectoryUse::kCheckpoints,
               .path = "/dev/shm/c",
               .existing = "/dev/shm",
               .type = "tmpfs",
               .is_memory = true,
               .total = 8 * kGiB,
               .free = 8 * kGiB};
  EXPECT_THAT(FindingsOf(directory, true),
              ElementsAre("warning: checkpoints: /dev/shm/c (to be made in /dev/shm) is in memory "
                          "(tmpfs)."));
}

TEST(DirectoryFindingsTest, ADirectoryThatIsNotThereYetIsJudgedByWhereItWillBe) {
  const test::TempDir temp;
  const Directory directory = ReadDirectory(DirectoryUse::kLogs, temp.Path("a/b/c"));
  EXPECT_EQ(directory.existing, temp.path());
  EXPECT_EQ(directory.trouble, "");
  EXPECT_GT(directory.total, 0u);
  EXPECT_TRUE(std::filesystem::is_empty(temp.path())) << "nothing was left there";
}

TEST(VersionsFindingsTest, AKernelThatMusterCannotRunWith) {
  EXPECT_THAT(FindingsOf(Versions{.found = {{"kernel", "6.1"}}}), IsEmpty());
  EXPECT_THAT(FindingsOf(Versions{.kernel_trouble = "this kernel has no pidfd_open()"}),
              ElementsAre("error: versions: this kernel has no pidfd_open()."));
}

TEST(SizeTest, AsPeopleReadIt) {
  EXPECT_EQ(Size(500), "500 B");
  EXPECT_EQ(Size(64.0 * 1024 * 1024), "64 MiB");
  EXPECT_EQ(Size(1.5 * 1024 * 1024 * 1024), "1.5 GiB");
}

TEST(DirectoryFindingsTest, OneThatDoesNotAnswerIsNamedWithItsMount) {
  Directory facts{.use = DirectoryUse::kCheckpoints, .path = "/data/run"};
  facts.hang = {.doing = "look at /mnt/nfs/run",
                .after = std::chrono::seconds(10),
                .mount = {.point = "/mnt/nfs", .type = "nfs4"}};
  EXPECT_THAT(FindingsOf(facts, true),
              ElementsAre("error: checkpoints: /data/run does not answer: to look at /mnt/nfs/run "
                          "did not come to an end within 10 s; /mnt/nfs is a mount of type nfs4."));
}

TEST(MountsTest, TheLongestPointAboveAPathCounts) {
  const std::string info =
      "22 1 0:21 / / rw - ext4 /dev/vda rw\n"
      "36 22 0:33 / /mnt/my\\040data rw,noatime master:1 - nfs4 server:/data rw\n"
      "37 22 0:34 / /mnt/my\\040data/fast rw - tmpfs none rw\n"
      "38 22 0:35 / /mnt/my\\040data/fast rw - xfs /dev/sdb rw\n";
  EXPECT_EQ(MountOf("/mnt/my data/a", info).point, "/mnt/my data");
  EXPECT_EQ(MountOf("/mnt/my data/a", info).type, "nfs4");
  EXPECT_EQ(MountOf("/mnt/my data/fast", info).type, "xfs");
  EXPECT_EQ(MountOf("/mnt/my database", info).type, "ext4");
  EXPECT_EQ(MountOf("/x", "").point, "");
}

TEST(NcclLibraryFindingsTest, WhatPyTorchBringsIsCompared) {
  EXPECT_EQ(NcclVersionIn("libnccl.so.2.20.5"), "2.20.5");
  EXPECT_EQ(NcclVersionIn("libnccl.so.2"), "");
  EXPECT_EQ(NcclVersionIn("x NCCL version 2.18.1+cuda12.1 y"), "2.18.1");
  EXPECT_EQ(NcclVersionIn("NCCL version %d.%d"), "");
  NcclLibrary library{.path = "/usr/lib/libnccl.so.2", .version = "2.18.1"};
  EXPECT_THAT(FindingsOf(library, std::string("2.18.1")), IsEmpty());
  EXPECT_THAT(FindingsOf(library, std::string()), IsEmpty());
  EXPECT_THAT(FindingsOf(library, std::string("2.20.5")),
              ElementsAre("note: NCCL: the loader finds /usr/lib/libnccl.so.2 (2.18.1), and "
                          "PyTorch brings NCCL 2.20.5."));
  library.by = "LD_PRELOAD";
  library.missing_preload = "/opt/libnccl.so";
  EXPECT_THAT(
      FindingsOf(library, std::string("2.20.5")),
      ElementsAre("warning: NCCL: LD_PRELOAD names /opt/libnccl.so, which is not there.",
                  HasSubstr("warning: NCCL: the loader finds /usr/lib/libnccl.so.2 (2.18.1, by "
                            "LD_PRELOAD), and PyTorch brings NCCL 2.20.5.")));
}

TEST(RendezvousClockFindingsTest, WhatTheWayMayHaveTakenIsLeftOut) {
  using std::chrono::milliseconds;
  RendezvousReach reach{.endpoint = {"h", 1},
                        .resolved = {.addresses = {"10.0.0.1"}},
                        .outcome = DialOutcome::kConnected};
  EXPECT_THAT(FindingsOf(reach), IsEmpty()) << "an old daemon does not tell";
  reach.clock = {.ahead = milliseconds(1500), .uncertainty = milliseconds(600)};
  EXPECT_THAT(FindingsOf(reach), IsEmpty());
  reach.clock->uncertainty = milliseconds(400);
  EXPECT_THAT(FindingsOf(reach), ElementsAre("warning: clock: this machine's clock is 1.5 s behind "
                                             "that of the rendezvous at h:1."));
  reach.clock->ahead = std::chrono::seconds(-90);
  EXPECT_THAT(FindingsOf(reach), ElementsAre(HasSubstr("error: clock: this machine's clock is ")));
}

}  // namespace
}  // namespace muster::launcher
