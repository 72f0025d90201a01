// close_range is missing, as on Linux before 5.9 or behind a container's seccomp filter.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"
#include "worker/process/spawn.h"
#include "worker/tree/orphan_guard.h"

namespace muster::worker {
namespace {

using test::IsAlive;
using test::WaitUntil;

// For this process and its children, for good.
bool ForbidCloseRange() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {sizeof program / sizeof program[0], program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

class MissingCloseRangeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(ForbidCloseRange());
    ASSERT_EQ(::syscall(SYS_close_range, 1000, 1000, 0), -1);
    ASSERT_EQ(errno, ENOSYS);
  }

  MissingCloseRangeTest() {
    if (::pipe2(pipe_, O_CLOEXEC) != 0) std::abort();
  }
  ~MissingCloseRangeTest() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }

  // Runs a command with our pipe as its standard output.
  absl::StatusOr<Spawned> Start(std::vector<std::string> argv) {
    SpawnRequest request;
    request.argv = std::move(argv);
    request.env = {"PATH=/usr/local/bin:/usr/bin:/bin"};
    request.stdout_fd = pipe_[1];
    return Spawn(request);
  }

  // Reads the pipe until `end`, or until its last writer is gone.
  std::string ReadUntil(char end) {
    std::string text;
    for (char byte; ::read(pipe_[0], &byte, 1) == 1 && byte != end;) text += byte;
    return text;
  }

  int pipe_[2];
};

// "On an old kernel the workers of a killed agent ran on forever": the guard held the write end of
// the pipe that was to report the agent's death.
TEST_F(MissingCloseRangeTest, WhatWorkersStartedDiesWithAnAgentThatIsKilled) {
  const pid_t agent = ::fork();
  if (agent == 0) {
    auto guard = OrphanGuard::Start({.capacity = 8});
    // The kernel kills the shell with the agent, but not the shell's child.
    const auto shell = Start({"sh", "-c", "sleep 10000 & echo $!; wait"});
    if (!guard.ok() || !shell.ok()) ::_exit(1);
    guard->Watch(shell->pid);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  // The shell may print before its group is watched.
  ASSERT_EQ(::waitpid(agent, nullptr, WUNTRACED), agent);
  const pid_t orphan = std::atoi(ReadUntil('\n').c_str());
  ASSERT_GT(orphan, 0);
  ASSERT_TRUE(IsAlive(orphan));
  ::kill(agent, SIGKILL);
  ::waitpid(agent, nullptr, 0);
  EXPECT_TRUE(WaitUntil([orphan] { return !IsAlive(orphan); }, std::chrono::seconds(10)));
  ::kill(orphan, SIGKILL);
}

// "A port of the agent's stayed open in a worker that outlived it."
TEST_F(MissingCloseRangeTest, NoDescriptorLeaksIntoAWorker) {
  // Opened without close-on-exec, as a library in our process might.
  const base::UniqueFd careless(::open("/dev/null", O_RDONLY));
  const base::UniqueFd high(::dup2(careless.get(), 200));
  const auto list = Start({"sh", "-c", "ls /proc/self/fd; echo ."});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(ReadUntil('.'), "0\n1\n2\n3\n") << "3 is the directory that ls reads";
  ::waitpid(list->pid, nullptr, 0);
  EXPECT_NE(::fcntl(high.get(), F_GETFD), -1) << "ours stay open";
}

}  // namespace
}  // namespace muster::worker
