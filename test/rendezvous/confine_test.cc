// What a confined process can still do, tried in a child for each question.
#include "rendezvous/confine.h"

#include <fcntl.h>
#include <netinet/in.h>
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

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

class ConfineTest : public testing::Test {
 protected:
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
