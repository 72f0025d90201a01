// A musterd whose port the service manager holds (socket activation).
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

class GivenSocketTest : public E2eTest {
 protected:
  Command StartManager(std::vector<std::string> flags) {
    std::vector<std::string> argv = {"python3", "test/e2e/service_manager.py", port_.endpoint(),
                                     DaemonPath()};
    argv.insert(argv.end(), flags.begin(), flags.end());
    return Command(argv);
  }

  // Of the daemon's main process, which was started for the nth time.
  static pid_t StartedAs(int nth, const Command& manager) {
    const std::string said = "started " + std::to_string(nth) + " ";
    return std::stoi(manager.out().substr(manager.out().find(said) + said.size()));
  }

  HeldPort port_;
};

// "Every agent that came while the daemon was restarted was refused."
TEST_F(GivenSocketTest, JobRunsThroughWhenTheServiceIsRestarted) {
  // The manager's port counts, not the one that is configured.
  Command manager = StartManager({"--listen=127.0.0.1:1", "--state-dir=" + Path("state")});
  ASSERT_TRUE(manager.WaitForErr("listening on " + port_.endpoint())) << manager.err();
  ASSERT_TRUE(manager.WaitForOut(".\n"));
  Command agent = StartAgent({"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + port_.endpoint(),
                              "--rdzv-conf=is_host=0"},
                             "echo rank $RANK sees [$LISTEN_FDS]; while ! test -e " + Path("end") +
                                 "; do sleep 0.02; done");
  ASSERT_TRUE(agent.WaitForOut("rank 0 sees []")) << agent.err();
  kill(StartedAs(1, manager), SIGTERM);
  ASSERT_TRUE(manager.WaitForErr("1 job with 1 node remembered")) << manager.err();
  ASSERT_TRUE(agent.WaitForErr("reconnected to the rendezvous")) << agent.err();
  Write("end", "");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_EQ(Lines(agent.out()).size(), 1u) << agent.out();
  ASSERT_TRUE(manager.WaitForOut("started 2 ") && manager.WaitForOut(".\n"));
  kill(StartedAs(2, manager), SIGTERM);
  EXPECT_EQ(manager.Wait(), 0);
}

TEST_F(GivenSocketTest, DaemonThatForgetsDoesNotTakeTheSocket) {
  Command manager = StartManager({});
  ASSERT_TRUE(manager.WaitForErr("the service manager has opened the port")) << manager.err();
  EXPECT_EQ(manager.Wait(), 0);
}

// "musterd did not start with `--` in ExecStart=: '--listen' was not expected."
TEST_F(GivenSocketTest, EndOfTheFlagsMakesNoDifference) {
  Command manager = StartManager({"--state-dir=" + Path("state"), "--"});
  ASSERT_TRUE(manager.WaitForErr("listening on " + port_.endpoint())) << manager.err();
  for (const int nth : {1, 2}) {
    ASSERT_TRUE(manager.WaitForOut("started " + std::to_string(nth) + " "));
    ASSERT_TRUE(manager.WaitForOut(".\n"));
    kill(StartedAs(nth, manager), SIGTERM);
  }
  EXPECT_EQ(manager.Wait(), 0) << manager.err();
}

// "--ready-fd=3 closed the port, and nobody said why."
TEST_F(GivenSocketTest, ReadyFdThatIsTheSocketIsRefused) {
  Command manager = StartManager({"--state-dir=" + Path("state"), "--ready-fd=3"});
  ASSERT_TRUE(manager.WaitForErr("--ready-fd=3 is the socket that the service manager has opened"))
      << manager.err();
  EXPECT_EQ(manager.Wait(), 0);
}

TEST_F(GivenSocketTest, DescriptorThatDoesNotListenIsNamed) {
  Command daemon({"bash", "-c",
                  "LISTEN_FDS=1 LISTEN_PID=$$ exec " + DaemonPath() +
                      " --state-dir=" + Path("state") + " 3</dev/null"});
  EXPECT_EQ(daemon.Wait(), 2);
  ASSERT_TRUE(daemon.WaitForErr("descriptor 3 is no TCP socket that listens")) << daemon.err();
}

TEST_F(GivenSocketTest, SocketsOfAnotherProcessAreLeftAlone) {
  Command daemon({"bash", "-c",
                  "LISTEN_FDS=1 LISTEN_PID=1 exec " + DaemonPath() +
                      " --listen=127.0.0.1:0 "
                      "3</dev/null"});
  ASSERT_TRUE(daemon.WaitForErr("listening on 127.0.0.1:")) << daemon.err();
}

}  // namespace
}  // namespace muster::test
