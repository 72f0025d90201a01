// What a confined process can still do, tried in a child for each question.
#include "rendezvous/confine.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

class ConfineTest : public testing::Test {
 protected:
#if defined(__SANITIZE_THREAD__)
  void SetUp() override {
    GTEST_SKIP() << "a user's id is set in ThreadSanitizer's thread, too";
  }
#endif
  ConfineTest() {
    for (const char* folder : {"read", "write", "other"}) {
      ::mkdir(dir_.Path(folder).c_str(), 0755);
      std::ofstream(dir_.Path(folder) + "/file") << "text";
    }
  }

  // The error with which `attempt`, which returns -1 for one, fails in a process that is confined;
  // 0: it does not.
  int Try(const std::function<long()>& attempt) const {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto missing = Confine({.reads = {dir_.Path("read")}, .writes = {dir_.Path("write")}});
      if (!missing.empty()) ::_exit(255);
      ::_exit(attempt() < 0 ? errno : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int Open(const std::string& path, int flags) const {
    return Try([&] { return ::open(path.c_str(), flags, 0600); });
  }
  bool Offered() const {
    return Try([] { return 0; }) == 0;
  }

  const test::TempDir dir_;
};

TEST_F(ConfineTest, ReachesWhatItWasGivenAndNothingElse) {
  if (!Offered()) GTEST_SKIP() << "this kernel has no Landlock or no seccomp";
  EXPECT_EQ(Open(dir_.Path("read/file"), O_RDONLY), 0);
  EXPECT_EQ(Open(dir_.Path("read/file"), O_WRONLY), EACCES);
  EXPECT_EQ(Open(dir_.Path("read/new"), O_WRONLY | O_CREAT), EACCES);
  EXPECT_EQ(Open(dir_.Path("write/file"), O_RDWR), 0);
  EXPECT_EQ(Open(dir_.Path("write/new"), O_WRONLY | O_CREAT), 0);
  EXPECT_EQ(Open(dir_.Path("other/file"), O_RDONLY), EACCES);
  EXPECT_EQ(Open(dir_.Path("other/new"), O_WRONLY | O_CREAT), EACCES);
  EXPECT_EQ(Open("/etc/hosts", O_RDONLY), 0);
  EXPECT_EQ(Open("/root", O_RDONLY | O_DIRECTORY), EACCES);
  const std::string from = dir_.Path("write/file"), to = dir_.Path("write/moved");
  EXPECT_EQ(Try([&] { return ::rename(from.c_str(), to.c_str()); }), 0);
  EXPECT_EQ(Try([&] { return ::unlink(to.c_str()); }), 0);
  EXPECT_EQ(Try([&] { return ::mkdir(dir_.Path("write/folder").c_str(), 0700); }), 0);
  EXPECT_EQ(Try([&] { return ::symlink("/", dir_.Path("write/link").c_str()); }), EACCES);
}

// "Our authority's certificates are in a folder that `current` leads to. After they were renewed
// the daemon could not read them."
TEST_F(ConfineTest, FileIsReadAfterALinkOnTheWayLeadsElsewhere) {
  if (!Offered()) GTEST_SKIP();
  for (const char* folder : {"site", "site/v1", "site/v2", "site/other"}) {
    ::mkdir(dir_.Path(folder).c_str(), 0755);
    std::ofstream(dir_.Path(folder) + "/file") << "text";
  }
  ASSERT_EQ(::symlink("v1", dir_.Path("site/current").c_str()), 0);
  const std::string file = dir_.Path("link");
  ASSERT_EQ(::symlink("site/current/file", file.c_str()), 0);
  const std::vector<std::string> folders = FoldersOf(file);
  // After somebody has made the change, by a process that was confined before.
  const auto reads = [&](const std::function<int()>& change) {
    int go[2];
    EXPECT_EQ(::pipe(go), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      if (!Confine({.reads = folders, .writes = {}}).empty()) ::_exit(255);
      char made = 0;
      if (::read(go[0], &made, 1) != 1) ::_exit(255);
      ::_exit(::open(file.c_str(), O_RDONLY) < 0 ? errno : 0);
    }
    EXPECT_EQ(change(), 0);
    EXPECT_EQ(::write(go[1], "", 1), 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(go[0]);
    ::close(go[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  };
  EXPECT_EQ(reads([] { return 0; }), 0);
  // As Kubernetes does it.
  EXPECT_EQ(reads([this] {
              return ::symlink("v2", dir_.Path("site/next").c_str()) +
                     ::rename(dir_.Path("site/next").c_str(), dir_.Path("site/current").c_str());
            }),
            0);
  // Replaced where it lies.
  EXPECT_EQ(reads([this] {
              return ::rename(dir_.Path("other/file").c_str(), dir_.Path("site/v2/file").c_str());
            }),
            0);
  EXPECT_THAT(folders, testing::Not(testing::Contains(dir_.Path("other"))));
}

// "h1:2379: Deadline Exceeded": /etc/resolv.conf was a link to /run/NetworkManager, which the
// daemon could not read, so that no name was ever found.
TEST_F(ConfineTest, ReadsWhatResolvConfAndItsLikeLeadTo) {
  if (!Offered()) GTEST_SKIP();
  const pid_t child = ::fork();
  if (child == 0) {
    // A machine of its own, as far as these folders go.
    const uid_t user = ::getuid();
    const gid_t group = ::getgid();
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(254);
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
    for (const char* folder : {"/etc", "/run"}) {
      if (::mount("none", folder, "tmpfs", 0, nullptr) != 0) ::_exit(254);
    }
    const auto make = [](const std::string& path) { std::ofstream(path) << "text"; };
    ::mkdir("/run/NetworkManager", 0755);
    ::mkdir("/run/resolvconf", 0755);
    ::mkdir("/run/other", 0755);
    make("/run/NetworkManager/resolv.conf");
    make("/run/resolvconf/hosts");
    make("/run/gai.conf");
    make("/run/other/file");
    ::symlink("../run/NetworkManager/resolv.conf", "/etc/resolv.conf");
    ::symlink("/run/resolvconf", "/etc/resolvconf");
    ::symlink("resolvconf/hosts", "/etc/hosts");
    ::symlink("/run/gai.conf", "/etc/gai.conf");
    ::symlink("/run/later/nsswitch.conf", "/etc/nsswitch.conf");
    if (!Confine({}).empty()) ::_exit(255);
    const auto reads = [](const char* path) { return ::open(path, O_RDONLY) >= 0; };
    int failed = 0;
    if (!reads("/etc/resolv.conf")) failed |= 1;
    if (!reads("/etc/hosts")) failed |= 2;
    if (!reads("/etc/gai.conf")) failed |= 4;
    if (reads("/run/other/file")) failed |= 8;
    const std::vector<std::string> unreadable = UnreadableFilesOfNames();
    if (unreadable != std::vector<std::string>{
                          "/etc/nsswitch.conf, which leads to /run/later/nsswitch.conf, cannot be "
                          "read: No such file or directory"}) {
      failed |= 16;
    }
    ::_exit(failed);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 254) GTEST_SKIP() << "no namespace may be made here";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "a bit for each that was wrong";
}

TEST_F(ConfineTest, StartsNoProgramAndLooksIntoNoProcess) {
  if (!Offered()) GTEST_SKIP();
  EXPECT_EQ(Try([] { return ::execl("/bin/true", "true", nullptr); }), EPERM);
  EXPECT_EQ(Try([] { return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }), EPERM);
  EXPECT_EQ(Try([] { return ::mount("none", "/mnt", "tmpfs", 0, nullptr); }), EPERM);
  EXPECT_EQ(Try([] { return ::syscall(SYS_bpf, 0, nullptr, 0); }), EPERM);
  EXPECT_EQ(Try([] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }), EPERM);
  EXPECT_EQ(Try([] { return ::unshare(CLONE_NEWUSER); }), EPERM);
  EXPECT_EQ(Try([] { return ::setuid(0); }), EPERM);
}

TEST_F(ConfineTest, HasTheSocketsOfADaemon) {
  if (!Offered()) GTEST_SKIP();
  for (const int family : {AF_INET, AF_INET6, AF_UNIX}) {
    EXPECT_EQ(Try([family] { return ::socket(family, SOCK_STREAM, 0); }), 0) << family;
  }
  EXPECT_EQ(Try([] { return ::socket(AF_NETLINK, SOCK_RAW, 0); }), 0);
  for (const int family : {AF_PACKET, AF_VSOCK, AF_ALG, AF_BLUETOOTH}) {
    EXPECT_EQ(Try([family] { return ::socket(family, SOCK_RAW, 0); }), EPERM) << family;
  }
}

TEST_F(ConfineTest, GetsNoNewPrivilegesAndLeavesNoCore) {
  if (!Offered()) GTEST_SKIP();
  EXPECT_EQ(Try([] { return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : -1; }), 0);
  EXPECT_EQ(Try([] { return ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : -1; }), 0);
}

#if defined(__x86_64__)
TEST_F(ConfineTest, ACallInAnotherConventionEndsIt) {
  if (!Offered()) GTEST_SKIP();
  EXPECT_EQ(Try([] { return ::syscall(0x40000000 + SYS_getpid); }), -SIGSYS);
}
#endif

}  // namespace
}  // namespace muster::rendezvous
