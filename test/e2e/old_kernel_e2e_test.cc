// Kernels, and seccomp filters of containers, that lack a system call.
#include <sys/syscall.h>

#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

class OldKernelTest : public E2eTest {
 protected:
  static Command Without(long call, std::vector<std::string> argv) {
    argv.insert(argv.begin(), {"python3", "test/e2e/without_call.py", std::to_string(call)});
    return Command(argv);
  }

  // Two workers, one of which fails once.
  void ExpectThatRunsWork(long call) {
    Command run = Without(call, {MusterPath(), "run", "--standalone", "--nproc-per-node=2",
                                 "--max-restarts=1", "--no-python", "sh", "-c",
                                 "test $RANK$TORCHELASTIC_RESTART_COUNT != 10 && echo done"});
    EXPECT_EQ(run.Wait(), 0) << run.err();
    EXPECT_TRUE(run.WaitForErr("rank 1 exited with code 1")) << run.err();
    EXPECT_TRUE(run.WaitForOut("done\n"));
  }

  void ExpectThatDaemonWorks(long call) {
    Command daemon = Without(
        call, {DaemonPath(), "--listen=127.0.0.1:0", "--state-dir=" + Path(std::to_string(call))});
    EXPECT_TRUE(daemon.WaitForErr("listening on")) << daemon.err();
    daemon.Signal(SIGTERM);
    EXPECT_EQ(daemon.Wait(), 0) << daemon.err();
  }
};

// "On the old cluster, workers outlived a killed agent, without a warning."
TEST_F(OldKernelTest, KernelWithoutPidfdIsRefusedInOneSentence) {
  Command run =
      Without(SYS_pidfd_open, {MusterPath(), "run", "--standalone", "--no-python", "true"});
  EXPECT_EQ(run.Wait(), 4);
  EXPECT_TRUE(
      run.WaitForErr("muster run: watch processes: pidfd_open: Function not implemented; "
                     "Muster needs Linux 5.4 or newer"))
      << run.err();
  Command daemon = Without(SYS_pidfd_open, {DaemonPath(), "--listen=127.0.0.1:0"});
  EXPECT_EQ(daemon.Wait(), 5);
  EXPECT_TRUE(daemon.WaitForErr("musterd: watch processes: pidfd_open: ")) << daemon.err();
  EXPECT_EQ(Lines(daemon.err()).size(), 1u);
}

TEST_F(OldKernelTest, HelpAndConfigurationNeedNoKernel) {
  Command run = Without(SYS_pidfd_open, {MusterPath(), "run", "--dry-run", "true"});
  EXPECT_EQ(run.Wait(), 0) << run.err();
}

TEST_F(OldKernelTest, NoClone3IsNoTrouble) {
  ExpectThatRunsWork(SYS_clone3);
  ExpectThatDaemonWorks(SYS_clone3);
}

TEST_F(OldKernelTest, NoCloseRangeIsNoTrouble) {
  ExpectThatRunsWork(SYS_close_range);
  ExpectThatDaemonWorks(SYS_close_range);
}

}  // namespace
}  // namespace muster::test
