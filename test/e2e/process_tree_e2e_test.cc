// No process of a job is left on the machine, however the job ended, even if processes moved to new
// sessions, got other parents or ignore signals. The test searches /proc for its mark.
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"

namespace muster::test {
namespace {

// Starts a daemon that no signal impresses but SIGKILL, another one that has forked twice, and a
// child in the worker's own group.
constexpr char kScatter[] =
    "setsid sh -c 'trap : TERM INT HUP; echo deaf; while :; do sleep 10000; done' &\n"
    "setsid sh -c 'setsid sh -c \"trap : TERM INT HUP; echo deaf; while :; do sleep 10000; done\" "
    "&'\n"
    "sleep 10000 &\n";

class ProcessTreeE2eTest : public E2eTest {
 protected:
  // Returns when the daemons of two workers are ready.
  Command StartScattered(const std::string& then, std::vector<std::string> flags = {}) {
    flags.insert(flags.end(), {"--standalone", "--nproc-per-node=2"});
    Command agent = StartAgent(std::move(flags), kScatter + then);
    EXPECT_TRUE(agent.WaitForOut("deaf\ndeaf\ndeaf\ndeaf\n")) << agent.out() << agent.err();
    return agent;
  }
};

// "After Ctrl-C, nvidia-smi still shows my data loaders."
TEST_F(ProcessTreeE2eTest, AfterASignalAndTheGraceNothingIsLeft) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    Command agent = StartScattered("wait", {"--shutdown-timeout=1"});
    agent.Signal(signal);
    EXPECT_EQ(agent.Wait(), 128 + signal);
    EXPECT_EQ(ProcessesWith(mark()).size(), 0u);
    EXPECT_TRUE(Contains(agent.err(), "killing what workers left behind"));
  }
}

TEST_F(ProcessTreeE2eTest, SecondInterruptDoesNotWaitForDaemons) {
  Command agent =
      StartScattered("trap 'echo stays' INT; echo ready >&2; while :; do sleep 0.01; done",
                     {"--shutdown-timeout=10000"});
  ASSERT_TRUE(agent.WaitForErr("ready\nready\n")) << agent.err();
  agent.Signal(SIGINT);
  ASSERT_TRUE(agent.WaitForOut("stays\nstays")) << agent.out();
  agent.Signal(SIGINT);
  EXPECT_EQ(agent.Wait(), 128 + SIGINT);
  EXPECT_EQ(agent.err().find("left behind"), std::string::npos) << agent.err();
  EXPECT_EQ(ProcessesWith(mark()).size(), 0u);
}

// "kill -9 of the launcher, and the GPUs were busy until I rebooted."
// "A node was killed as its job started, and its sleep was still there": the guard came after the
// workers.
TEST_F(ProcessTreeE2eTest, AgentThatIsKilledAsItsWorkerSpeaksLeavesNothing) {
  for (int i = 0; i < 10; ++i) {
    Command agent = StartAgent({"--standalone"}, "echo here; sleep 10000; :");
    ASSERT_TRUE(agent.WaitForOut("here")) << agent.err();
    agent.Signal(SIGKILL);
    EXPECT_EQ(agent.Wait(), -SIGKILL);
    EXPECT_TRUE(WaitForProcesses(mark(), 0));
  }
}

TEST_F(ProcessTreeE2eTest, AgentThatIsKilledLeavesNothing) {
  Command agent = StartScattered("wait");
  agent.Signal(SIGKILL);
  EXPECT_EQ(agent.Wait(), -SIGKILL);
  EXPECT_TRUE(WaitForProcesses(mark(), 0));
}

TEST_F(ProcessTreeE2eTest, SuccessfulWorkersLeaveNothingEither) {
  Command agent = StartScattered("while [ ! -e " + Path("go") + " ]; do sleep 0.01; done",
                                 {"--shutdown-timeout=1"});
  Write("go", "");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_EQ(ProcessesWith(mark()).size(), 0u);
}

// "My checkpoint was cut off: the shell around my python ended at SIGTERM, and python was killed."
TEST_F(ProcessTreeE2eTest, ShellAroundTheTrainingDoesNotTakeItsGraceAway) {
  const std::string training = Write("train.sh",
                                     "#!/bin/sh\n"
                                     "trap 'sleep 0.3 && echo saved; exit 0' TERM\n"
                                     "echo ready\n"
                                     "while :; do sleep 0.01; done\n",
                                     0755);
  Command agent = StartAgent({"--standalone"}, training + "; echo the shell goes on");
  ASSERT_TRUE(agent.WaitForOut("ready")) << agent.err();
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(), 128 + SIGTERM);
  EXPECT_TRUE(Contains(agent.out(), "saved"));
}

}  // namespace
}  // namespace muster::test
