// Signals to the agent: what its workers receive, how it ends, and that nothing is left behind.
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"

namespace muster::test {
namespace {

// Says when it is ready, and then which signal it was given. `$!` is waited for, as a shell runs
// its trap only between commands.
constexpr char kTellsSignal[] =
    "for s in TERM INT HUP QUIT; do trap \"echo worker $RANK got $s; kill $!; exit 0\" $s; done\n"
    "sleep 10000 &\n"
    "echo worker $RANK is ready\n"
    "wait";

class AgentSignalTest : public E2eTest {
 protected:
  static void WaitForWorkers(Command& agent, int count) {
    for (int rank = 0; rank < count; ++rank) {
      ASSERT_TRUE(agent.WaitForOut("worker " + std::to_string(rank) + " is ready"))
          << agent.out() << agent.err();
    }
  }
};

TEST_F(AgentSignalTest, WorkersGetTheSignalOfTheAgent) {
  const struct {
    int number;
    std::string name;
  } signals[] = {{SIGTERM, "TERM"}, {SIGINT, "INT"}, {SIGHUP, "HUP"}, {SIGQUIT, "QUIT"}};
  for (const auto& signal : signals) {
    Command agent = StartAgent({"--standalone", "--nproc-per-node=2"}, kTellsSignal);
    WaitForWorkers(agent, 2);
    agent.Signal(signal.number);
    EXPECT_EQ(agent.Wait(), 128 + signal.number);
    EXPECT_TRUE(Contains(agent.out(), "worker 0 got " + signal.name));
    EXPECT_TRUE(Contains(agent.out(), "worker 1 got " + signal.name));
    EXPECT_TRUE(Contains(agent.err(), "muster run: sh was interrupted by SIG" + signal.name));
    EXPECT_TRUE(WaitForProcesses(mark(), 0));
  }
}

// "After kill -9 of torchrun the workers are still there and hold the GPUs."
TEST_F(AgentSignalTest, AgentThatIsKilledLeavesNeitherWorkersNorWhatTheyStarted) {
  Command agent = StartAgent({"--standalone", "--nproc-per-node=4"},
                             "echo $MUSTER_BEAT_SOCKET >" + Path("socket.$RANK") +
                                 "; echo worker $RANK is ready; sleep 10000; :");
  WaitForWorkers(agent, 4);
  std::string socket;
  std::getline(std::ifstream(Path("socket.0")), socket);
  ASSERT_TRUE(std::filesystem::exists(socket)) << socket;
  // The agent, its guard, four shells and what they started.
  ASSERT_TRUE(WaitForProcesses(mark(), 10));
  agent.Signal(SIGKILL);
  EXPECT_EQ(agent.Wait(), -SIGKILL);
  EXPECT_TRUE(WaitForProcesses(mark(), 0));
  EXPECT_FALSE(std::filesystem::exists(socket)) << "what beats were told by";
}

TEST_F(AgentSignalTest, ProcessesThatAWorkerStartedEndWithIt) {
  Command agent = StartAgent({"--standalone"}, "sleep 10000 & echo worker $RANK is ready; wait");
  WaitForWorkers(agent, 1);
  ASSERT_TRUE(WaitForProcesses(mark(), 4));
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(), 128 + SIGTERM);
  EXPECT_TRUE(WaitForProcesses(mark(), 0));
}

// "Ctrl-C did nothing visible, and a second Ctrl-C left workers behind."
TEST_F(AgentSignalTest, SecondInterruptKillsAtOnce) {
  Command agent =
      StartAgent({"--standalone", "--nproc-per-node=2", "--shutdown-timeout=10000"},
                 "trap 'echo stays' INT; echo worker $RANK is ready; while :; do sleep 0.01; done");
  WaitForWorkers(agent, 2);
  agent.Signal(SIGINT);
  ASSERT_TRUE(agent.WaitForOut("stays\nstays")) << agent.out();
  agent.Signal(SIGINT);
  EXPECT_EQ(agent.Wait(), 128 + SIGINT);
  EXPECT_TRUE(WaitForProcesses(mark(), 0));
}

// "My training under nohup died when I closed the terminal."
// "Runs that were interrupted in their first milliseconds left empty directories in /tmp."
TEST_F(AgentSignalTest, InterruptedBeforeItsStartLeavesNothing) {
  const std::string pipe = Path("events");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  Command agent = StartAgent({"--standalone", "--event-log=" + pipe}, "true");
  // It is on its way, and waits for somebody to read what happens.
  ASSERT_TRUE(WaitForProcesses(mark(), 1));
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(), -SIGTERM);
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(Path(""))) {
    left.push_back(entry.path().filename());
  }
  EXPECT_THAT(left, testing::UnorderedElementsAre("events"));
}

TEST_F(AgentSignalTest, IgnoredHangUpStaysIgnored) {
  Command agent({"nohup", MusterPath(), "run", "--standalone", "--log-dir=/dev/null", "--no-python",
                 "sh", "-c", "kill -HUP $PPID; kill -HUP $$; echo survived"},
                {mark()});
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_TRUE(Contains(agent.out(), "survived"));
}

TEST_F(AgentSignalTest, AgentThatWaitsForOtherNodesCanBeInterrupted) {
  const HeldPort port;
  Command agent = StartAgent({"--nnodes=2", "--rdzv-endpoint=" + port.endpoint()}, "true");
  // Said after a second, as nobody else has come.
  ASSERT_TRUE(agent.WaitForErr("1 of 2 nodes are here")) << agent.err();
  agent.Signal(SIGINT);
  EXPECT_EQ(agent.Wait(), 128 + SIGINT);
}

TEST_F(AgentSignalTest, OtherNodesHearWhyTheHostOfTheRendezvousLeaves) {
  const HeldPort port;
  const std::vector<std::string> flags = {"--nnodes=2", "--rdzv-endpoint=" + port.endpoint()};
  Command host = StartAgent(flags, kTellsSignal);
  ASSERT_TRUE(host.WaitForErr("1 of 2 nodes are here")) << host.err();
  Command other = StartAgent(flags, kTellsSignal);
  ASSERT_TRUE(host.WaitForOut("is ready") && other.WaitForOut("is ready"));
  host.Signal(SIGTERM);
  EXPECT_EQ(host.Wait(), 128 + SIGTERM);
  EXPECT_EQ(other.Wait(), 3);
  EXPECT_TRUE(
      Contains(other.err(), "the node that hosts the rendezvous was interrupted by SIGTERM"));
}

}  // namespace
}  // namespace muster::test
