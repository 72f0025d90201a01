// `muster doctor` on machines with one fault each, put in for real: in a mount namespace, with
// setrlimit, in a control group, by a library that changes what the time is.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class DoctorTest : public E2eTest {
 protected:
  struct Answer {
    std::optional<int> code;
    // "error: shared memory: /dev/shm has ..." for each.
    std::vector<std::string> findings;
    std::string text;
  };

  // `muster doctor --json` with these arguments; `before` is what starts it: unshare, prlimit, env.
  static Answer Ask(std::vector<std::string> before, const std::vector<std::string>& args = {},
                    const std::vector<std::string>& environment = {}) {
    before.insert(before.end(), {MusterPath(), "doctor", "--json"});
    before.insert(before.end(), args.begin(), args.end());
    Command doctor(before, environment);
    Answer answer{.code = doctor.Wait(), .text = doctor.out() + doctor.err()};
    const base::Json json = base::ParseJson(doctor.out());
    if (!json.is_object()) return answer;
    for (const base::Json& one : json["findings"]) {
      answer.findings.push_back(absl::StrCat(one["severity"].get<std::string>(), ": ",
                                             one["subject"].get<std::string>(), ": ",
                                             one["what"].get<std::string>()));
    }
    return answer;
  }

  // The same where root may mount: `fault` is a shell command that is run first, in namespaces of
  // its own for mounts, for the name of the machine and for its network.
  Answer AskAfter(const std::string& fault, const std::vector<std::string>& args = {}) {
    return Ask({"unshare", "--mount", "--uts", "--net", "sh", "-c",
                absl::StrCat("set -e; ", fault, "; exec \"$@\""), "sh"},
               args);
  }

  void SetUp() override {
    if (!Succeeds({"unshare", "--mount", "--uts", "--net", "true"})) {
      GTEST_SKIP() << "to put a fault into a machine takes root";
    }
  }
};

TEST_F(DoctorTest, AMachineWithRoomAndANameHasNoErrors) {
  const std::string hosts = Write("hosts", "127.0.0.1 localhost\n10.7.0.1 well\n");
  const Answer answer = AskAfter(
      absl::StrCat("mount -t tmpfs -o size=2g none /dev/shm; hostname well; mount --bind ", hosts,
                   " /etc/hosts; ip link set lo up; ip link add eth7 type veth peer name eth8; ip "
                   "link set eth8 up; ip addr add 10.7.0.1/24 "
                   "dev eth7; ip link set eth7 up"));
  EXPECT_EQ(answer.code, 0) << answer.text;
  EXPECT_THAT(answer.text, HasSubstr("well leads to 10.7.0.1"));
  EXPECT_THAT(answer.text, HasSubstr("eth7"));
}

TEST_F(DoctorTest, LittleSharedMemory) {
  const Answer answer = AskAfter("mount -t tmpfs -o size=64m none /dev/shm");
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings, Contains("error: shared memory: /dev/shm has 64 MiB, of which 64 "
                                        "MiB are free."));
}

TEST_F(DoctorTest, SharedMemoryThatMayNotBeWritten) {
  const Answer answer = AskAfter("mount -t tmpfs -o ro none /dev/shm");
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings, Contains("error: shared memory: no file can be made in /dev/shm: "
                                        "Read-only file system."));
}

TEST_F(DoctorTest, FewFilesMayBeOpen) {
  const Answer answer = Ask({"prlimit", "--nofile=100:100"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings, Contains("error: limits: a process may have 100 files open, and "
                                        "raise that to 100 (RLIMIT_NOFILE)."));
}

TEST_F(DoctorTest, FewProcessesMayBeStartedByAUser) {
  // nobody, as the limit does not hold for root; and where nobody may run this program.
  const Answer answer = Ask({"unshare", "--mount", "sh", "-c",
                             "set -e; mount -t tmpfs none /mnt; touch /mnt/muster; mount --bind "
                             "\"$1\" /mnt/muster; shift; cd /mnt; exec setpriv --reuid=65534 "
                             "--regid=65534 --clear-groups prlimit --nproc=200:200 /mnt/muster "
                             "\"$@\"",
                             "sh"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings, Contains("error: limits: this user may have 200 processes and "
                                        "threads (RLIMIT_NPROC)."));
}

TEST_F(DoctorTest, SmallFilesAndFewAddresses) {
  const Answer answer = Ask({"prlimit", "--fsize=1048576:1048576", "--as=17179869184:17179869184"});
  EXPECT_THAT(answer.findings, Contains("warning: limits: a file may have 1 MiB (RLIMIT_FSIZE)."));
  EXPECT_THAT(answer.findings,
              Contains("warning: limits: a process may have 16 GiB of addresses (RLIMIT_AS)."));
}

TEST_F(DoctorTest, LogDirectoryThatMayNotBeWritten) {
  const std::string logs = Path("logs");
  std::filesystem::create_directory(logs);
  const Answer answer =
      AskAfter(absl::StrCat("mount -t tmpfs -o ro none ", logs), {"--log-dir", logs});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings,
              Contains(HasSubstr(absl::StrCat("error: log directory: nothing can be written to ",
                                              logs, ": Read-only file system (tmpfs, "))));
}

TEST_F(DoctorTest, CheckpointDirectoryThatIsFull) {
  const std::string full = Path("full");
  std::filesystem::create_directory(full);
  const Answer answer =
      AskAfter(absl::StrCat("mount -t tmpfs -o size=1m none ", full, "; dd if=/dev/zero of=", full,
                            "/x bs=4096 count=256 2>/dev/null"),
               {full});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(
      answer.findings,
      Contains(HasSubstr(absl::StrCat("error: checkpoints: nothing can be written to ", full,
                                      ": No space left on device (tmpfs, 0 B of 1 MiB free)"))));
}

TEST_F(DoctorTest, CheckpointDirectoryWithoutRoomForMoreFiles) {
  const std::string place = Path("inodes");
  std::filesystem::create_directory(place);
  const Answer answer =
      AskAfter(absl::StrCat("mount -t tmpfs -o size=2g,nr_inodes=20 none ", place), {place});
  EXPECT_THAT(answer.findings, Contains(HasSubstr(" more files (tmpfs has 20)")));
  EXPECT_THAT(
      answer.findings,
      Contains(HasSubstr(absl::StrCat("warning: checkpoints: ", place, " is in memory (tmpfs)."))));
}

TEST_F(DoctorTest, OwnNameThatLeadsToLoopback) {
  const std::string hosts = Write("hosts", "127.0.0.1 localhost\n127.0.1.1 sick\n");
  const Answer answer =
      AskAfter(absl::StrCat("hostname sick; mount --bind ", hosts, " /etc/hosts"));
  EXPECT_THAT(answer.findings, Contains("warning: names: this machine's own name leads to "
                                        "127.0.1.1, which only this machine can reach."));
}

TEST_F(DoctorTest, OwnNameThatLeadsElsewhere) {
  const std::string hosts = Write("hosts", "127.0.0.1 localhost\n10.99.1.2 sick\n");
  const Answer answer =
      AskAfter(absl::StrCat("hostname sick; mount --bind ", hosts, " /etc/hosts"));
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings, Contains("error: names: this machine's own name, sick, leads "
                                        "to 10.99.1.2, which no interface of this machine has."));
}

TEST_F(DoctorTest, NamesThatDoNotResolve) {
  const std::string hosts = Write("hosts", "");
  const std::string order = Write("nsswitch.conf", "hosts: files\n");
  const Answer answer =
      AskAfter(absl::StrCat("hostname sick; mount --bind ", hosts, " /etc/hosts; mount --bind ",
                            order, " /etc/nsswitch.conf"));
  EXPECT_THAT(answer.findings,
              Contains(HasSubstr("warning: names: this machine's own name does not resolve (")));
  EXPECT_THAT(answer.findings, Contains(HasSubstr("no network interface has an address")));
}

TEST_F(DoctorTest, VariablesThatNameWhatIsNotThere) {
  const Answer answer = Ask(
      {}, {},
      {"NCCL_SOCKET_IFNAME=ib7", "GLOO_SOCKET_IFNAME=eth77", "NCCL_IB_HCA=mlx9",
       "NCCL_TOPO_FILE=/nonexistent.xml", "NCCL_P2P_DISABLE=1", "CUDA_VISIBLE_DEVICES=nonsense"});
  EXPECT_EQ(answer.code, 1);
  for (const char* const what :
       {"error: NCCL: NCCL_SOCKET_IFNAME=ib7 means no interface here that is up and has an",
        "error: Gloo: GLOO_SOCKET_IFNAME=eth77 names eth77, which is no interface here",
        "error: NCCL: NCCL_IB_HCA=mlx9 means no active port",
        "error: NCCL: NCCL_TOPO_FILE=/nonexistent.xml: there is no such file.",
        "warning: NCCL: NCCL_P2P_DISABLE=1 is set.", "GPUs: CUDA_VISIBLE_DEVICES=nonsense "}) {
    EXPECT_THAT(answer.findings, Contains(HasSubstr(what)));
  }
}

TEST_F(DoctorTest, AClockThatWasNeverSet) {
  const std::string library = std::filesystem::absolute("test/chaos/libclock_skew.so").string();
  const Answer answer = Ask({"env", "SKEW_S=-1700000000", absl::StrCat("LD_PRELOAD=", library)});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings, Contains(HasSubstr("error: clock: the clock says 197")));
}

// A group of the test's own, where processes are counted.
TEST_F(DoctorTest, ControlGroupWithoutRoomForProcesses) {
  const std::string name = absl::StrCat("doctor-", ::getpid());
  std::string group;
  for (const char* const place : {"/sys/fs/cgroup/pids/", "/sys/fs/cgroup/"}) {
    std::error_code error;
    std::filesystem::create_directory(place + name, error);
    if (!error && std::ofstream(place + name + "/pids.max") << "60" << std::flush) {
      group = place + name;
      break;
    }
    std::filesystem::remove(place + name, error);
  }
  if (group.empty()) GTEST_SKIP() << "no control group that counts processes can be made here";
  const Answer answer =
      Ask({"sh", "-c", absl::StrCat("echo $$ >", group, "/cgroup.procs; exec \"$@\""), "sh"});
  std::filesystem::remove(group);
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings, Contains(HasSubstr("error: control group: the control group allows "
                                                  "60 processes and threads, of which ")));
}

TEST_F(DoctorTest, ControlGroupWithoutRoomInMemory) {
  const std::string name = absl::StrCat("doctor-", ::getpid());
  std::string group;
  for (const auto& [place, file] : {std::pair("/sys/fs/cgroup/memory/", "/memory.limit_in_bytes"),
                                    std::pair("/sys/fs/cgroup/", "/memory.max")}) {
    std::error_code error;
    std::filesystem::create_directory(place + name, error);
    if (!error && std::ofstream(place + name + file) << (512 << 20) << std::flush) {
      group = place + name;
      break;
    }
    std::filesystem::remove(place + name, error);
  }
  if (group.empty()) GTEST_SKIP() << "no control group that counts memory can be made here";
  const Answer answer =
      Ask({"sh", "-c", absl::StrCat("echo $$ >", group, "/cgroup.procs; exec \"$@\""), "sh"});
  std::filesystem::remove(group);
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings, Contains(HasSubstr("error: control group: the control group of this "
                                                  "process allows 512 MiB of memory")));
}

// Read-only groups, as most containers have them.
TEST_F(DoctorTest, ControlGroupThatIsNotDelegated) {
  const Answer answer = AskAfter("mount -t tmpfs none /sys/fs/cgroup");
  EXPECT_THAT(answer.findings, Contains(HasSubstr("note: control group: ")));
}

TEST_F(DoctorTest, TextFitsEightyColumnsAndNamesErrorsFirst) {
  Command doctor({"unshare", "--mount", "sh", "-c",
                  "mount -t tmpfs -o size=1m none /dev/shm; exec \"$@\"", "sh", MusterPath(),
                  "doctor"});
  EXPECT_EQ(doctor.Wait(), 1) << doctor.err();
  EXPECT_THAT(doctor.out(), HasSubstr("\n\nerror: shared memory: /dev/shm has 1 MiB"));
  EXPECT_THAT(doctor.out(), HasSubstr("\n  why: NCCL passes data"));
  EXPECT_THAT(doctor.out(), HasSubstr("\nlooked at, and fine:\n"));
  for (const std::string& line : Lines(doctor.out())) EXPECT_LE(line.size(), 80u) << line;
}

TEST_F(DoctorTest, RendezvousThatAnswers) {
  Daemon daemon = StartDaemon();
  Command doctor({MusterPath(), "doctor", "--json", "--rdzv-endpoint", daemon.endpoint},
                 Environment());
  EXPECT_NE(doctor.Wait(), std::nullopt);
  EXPECT_THAT(doctor.out(), HasSubstr(absl::StrCat(daemon.endpoint, " (127.0.0.1) answers, ")))
      << doctor.err();
}

TEST_F(DoctorTest, RendezvousWhoseClockIsAnother) {
  const std::string library = std::filesystem::absolute("test/chaos/libclock_skew.so").string();
  HeldPort port;
  Command daemon({"env", "SKEW_S=20", absl::StrCat("LD_PRELOAD=", library), DaemonPath(),
                  "--insecure", "--listen=" + port.endpoint()});
  ASSERT_TRUE(daemon.WaitForErr("listening on")) << daemon.err();
  const Answer answer = Ask({}, {"--insecure", "--rdzv-endpoint", port.endpoint()});
  EXPECT_THAT(answer.findings,
              Contains(AllOf(HasSubstr("warning: clock: this machine's clock is "),
                             HasSubstr(absl::StrCat(" behind that of the rendezvous at ",
                                                    port.endpoint(), ".")))))
      << answer.text;
}

// As if a server of NFS were gone, though its address is still there.
TEST_F(DoctorTest, CheckpointDirectoryOnAFileSystemThatDoesNotAnswer) {
  const std::string place = Path("frozen");
  std::filesystem::create_directory(place);
  std::filesystem::create_directory_symlink(place, Path("link"));
  const std::string script = std::filesystem::absolute("test/e2e/frozen_mount.py").string();
  if (!std::filesystem::exists("/dev/fuse")) GTEST_SKIP() << "there is no FUSE here";
  const Answer answer =
      Ask({"unshare", "--mount", "python3", script, place}, {Path("link") + "/run"});
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings,
              Contains(AllOf(HasSubstr(absl::StrCat("error: checkpoints: ", Path("link"),
                                                    "/run does not answer: to look at ")),
                             HasSubstr(absl::StrCat("; ", place, " is a mount of type fuse")))))
      << answer.text;
}

TEST_F(DoctorTest, AnotherNcclThanPyTorchBrings) {
  const std::string library = Write("libnccl.so.2",
                                    "\x7f"
                                    "ELF ... NCCL version 2.18.1+cuda12.1");
  const std::string python = Write("python", "#!/bin/sh\necho PyTorch=2.4.0\necho NCCL=2.20.5\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const Answer found = Ask({}, {}, {"LD_LIBRARY_PATH=" + Path(""), "PYTHON_EXEC=" + python});
  EXPECT_THAT(found.findings,
              Contains(HasSubstr(
                  absl::StrCat("note: NCCL: the loader finds ", Path(""),
                               "/libnccl.so.2 "
                               "(2.18.1, by LD_LIBRARY_PATH), and PyTorch brings NCCL 2.20.5."))))
      << found.text;
  const Answer preloaded = Ask(
      {"env", "LD_PRELOAD=" + Path("gone") + "/libnccl.so.2 " + library, "PYTHON_EXEC=" + python});
  EXPECT_THAT(preloaded.findings,
              Contains(HasSubstr(absl::StrCat("warning: NCCL: LD_PRELOAD names ", Path("gone"),
                                              "/libnccl.so.2, which is not there."))))
      << preloaded.text;
  EXPECT_THAT(preloaded.findings,
              Contains(HasSubstr(absl::StrCat("warning: NCCL: the loader finds ", library,
                                              " (2.18.1, by LD_PRELOAD), and PyTorch brings"))));
}

TEST_F(DoctorTest, RendezvousWithAnotherToken) {
  Daemon daemon = StartDaemon();
  ASSERT_TRUE(Succeeds({MusterPath(), "token", "new", Path("other")}));
  const Answer answer =
      Ask({}, {"--rdzv-endpoint", daemon.endpoint, "--token-file", Path("other")}, Environment());
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings,
              Contains(HasSubstr(absl::StrCat("error: rendezvous: there is a connection to ",
                                              daemon.endpoint, ", but no answer: "))))
      << answer.text;
}

TEST_F(DoctorTest, RendezvousThatIsNotThere) {
  HeldPort port;
  const Answer refused = Ask({}, {"--rdzv-endpoint", port.endpoint()}, Environment());
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.findings,
              Contains(absl::StrCat("error: rendezvous: no connection to ", port.endpoint(),
                                    " (127.0.0.1): Connection refused.")));
  const Answer unknown =
      Ask({}, {"--rdzv-endpoint=no-such-host.invalid:29400", "--insecure"}, Environment());
  EXPECT_THAT(unknown.findings, Contains(HasSubstr("error: rendezvous: the name of the rendezvous, "
                                                   "no-such-host.invalid, does not resolve (")));
}

// A port that takes connections and never says a word.
TEST_F(DoctorTest, RendezvousThatSaysNothing) {
  HeldPort port;
  port.Listen();
  const Answer answer = Ask({}, {"--rdzv-endpoint", port.endpoint()}, Environment());
  EXPECT_EQ(answer.code, 1);
  EXPECT_THAT(answer.findings, Contains(HasSubstr("error: rendezvous: there is a connection to ")));
}

TEST_F(DoctorTest, ArgumentsAreChecked) {
  EXPECT_EQ(Ask({}, {"--nnodes=2"}).code, 2);
  EXPECT_THAT(Ask({}, {"--nnodes=2"}).text, HasSubstr("muster doctor: unknown flag '--nnodes'"));
  EXPECT_EQ(Ask({}, {""}).code, 2);
  EXPECT_THAT(Ask({}, {"--help"}).text, HasSubstr("Usage: muster doctor [flags] [DIRECTORY...]"));
}

}  // namespace
}  // namespace muster::test
