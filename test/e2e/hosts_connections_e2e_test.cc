// Connections that ssh keeps for the next command (--ssh-control-persist): their use, and that they
// make nothing worse.
#include <csignal>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "test/e2e/ssh_hosts.h"
#include "test/support/process_scan.h"
#include "test/support/temp_dir.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr char kHostsConnectionsStays[] =
    "echo worker $RANK of $WORLD_SIZE is ready in round $MUSTER_ROUND; sleep 10000 & wait";

class KeptConnectionsTest : public SshHostsTest {
 protected:
  // Each test takes those that it names.
  void SetUp() override { MakeHosts(3, Connections::kAreKept); }

  // A job of two nodes, whose workers are ready.
  Command StartReady(const std::vector<std::string>& flags) {
    std::vector<std::string> all = Joined({"--hosts=node0,node1"}, flags);
    Command run = StartOnHosts(all, kHostsConnectionsStays);
    for (const char* const rank : {"0", "1"}) {
      EXPECT_TRUE(run.WaitForOut(absl::StrCat("worker ", rank, " of 2 is ready in round 0")))
          << run.out() << run.err();
    }
    return run;
  }
};

// "I start the same job forty times a day, and each time it logs in everywhere again."
TEST_F(KeptConnectionsTest, NextCommandNeedsNoConnectionOfItsOwn) {
  std::vector<pid_t> sessions;
  for (int i = 0; i < 3; ++i) {
    Command run = StartOnHosts({"--hosts=node0,node1"}, "echo rank $RANK of $WORLD_SIZE");
    EXPECT_EQ(run.Wait(), 0) << run.err();
    EXPECT_THAT(Lines(run.out()),
                UnorderedElementsAre("[default0]:rank 0 of 2", "[default1]:rank 1 of 2"))
        << run.err();
    ASSERT_THAT(Sessions(0), SizeIs(1)) << "of sshd, for all commands";
    if (i == 0) sessions = Sessions(0);
    EXPECT_EQ(Sessions(0), sessions);
  }
  Command ps = StartWhereTyped({MusterPath(), "ps", "--hosts=node0,node1"});
  EXPECT_EQ(ps.Wait(), 0) << ps.err();
  EXPECT_EQ(Sessions(0), sessions);
  EXPECT_THAT(KeptConnections(), SizeIs(2));
}

TEST_F(KeptConnectionsTest, ThatNothingUsesEndsAfterItsTime) {
  Command run = StartOnHosts({"--hosts=node0", "--ssh-control-persist=0.5"}, "true");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  ExpectNothingLeft();
  EXPECT_TRUE(WaitUntil([this] { return Sessions(0).empty(); }));
  EXPECT_THAT(KeptConnections(), IsEmpty());
}

TEST_F(KeptConnectionsTest, NoneIsKeptWhereThatIsNotWanted) {
  for (const std::string command : {"run", "ps"}) {
    std::vector<std::string> argv = {MusterPath(), command, "--hosts=node0",
                                     "--ssh-control-persist=0"};
    if (command == "run") argv.insert(argv.end(), {"--no-python", "true"});
    Command run = StartWhereTyped(argv);
    EXPECT_EQ(run.Wait(), 0) << run.err();
    EXPECT_THAT(KeptConnections(), IsEmpty());
  }
}

// With a new connection: the kept one may be broken.
TEST_F(KeptConnectionsTest, NodeIsStartedAgainWhenTheSshThatKeepsItsConnectionIsKilled) {
  Command first = StartOnHosts({"--hosts=node1"}, "true");
  EXPECT_EQ(first.Wait(), 0) << first.err();
  const std::vector<pid_t> kept = KeptConnections();
  ASSERT_THAT(kept, SizeIs(1));
  Command run = StartReady({});
  kill(kept.front(), SIGKILL);
  EXPECT_TRUE(run.WaitForErr("muster run: node1 was lost: the connection broke")) << run.err();
  EXPECT_TRUE(run.WaitForOut("worker 1 of 2 is ready in round 1")) << run.out() << run.err();
  EndJob(run);
}

// Its session over the connection ends with it, and the connection stays.
TEST_F(KeptConnectionsTest, NodeIsStartedAgainWhenTheSshThatUsesAConnectionIsKilled) {
  Command run = StartReady({});
  const std::vector<pid_t> ssh = Processes(-1, " node1 ");
  ASSERT_THAT(ssh, SizeIs(1));
  kill(ssh.front(), SIGKILL);
  EXPECT_TRUE(run.WaitForErr("muster run: node1 was lost: ")) << run.err();
  EXPECT_TRUE(run.WaitForOut("worker 1 of 2 is ready in round 1")) << run.out() << run.err();
  EXPECT_THAT(KeptConnections(), SizeIs(2));
  EndJob(run);
}

// "I killed the launcher, and the ranks went on over the connections that were still there."
TEST_F(KeptConnectionsTest, NothingRunsOnOverThemWhenTheCommandIsKilled) {
  Command run = StartReady({});
  kill(Processes(-1, "/muster run").front(), SIGKILL);
  EXPECT_TRUE(run.Wait());
  ExpectNothingLeft();
  EXPECT_THAT(KeptConnections(), SizeIs(2));
}

// "It said that a control master had terminated; I had to find out myself what was wrong with
// node1."
TEST_F(KeptConnectionsTest, HostThatIsGoneSinceIsNamedWithSshsReason) {
  Command first = StartOnHosts({"--hosts=node0,node1"}, "true");
  EXPECT_EQ(first.Wait(), 0) << first.err();
  PowerOff(1);
  StopSshd(1);
  Command run = StartOnHosts({"--hosts=node0,node1"}, "true");
  EXPECT_EQ(run.Wait(std::chrono::seconds(60)), 3) << run.err();
  EXPECT_THAT(run.err(), HasSubstr("node1 cannot be reached: "));
  EXPECT_THAT(run.err(), HasSubstr("Connection refused"));
  ExpectNothingLeft();
}

// "My job ended, and so did that of a colleague who uses the same jump host."
TEST_F(KeptConnectionsTest, WayThroughAnotherHostIsEachCommandsOwn) {
  Write("hosts/ssh_config",
        "Host node0 node1\n  ProxyJump node2\n" + ReadAll(Path("hosts/ssh_config")));
  Command first = StartOnHosts({"--hosts=node0,node1"}, kHostsConnectionsStays);
  ASSERT_TRUE(first.WaitForOut("worker 1 of 2 is ready")) << first.err();
  Command run = StartReady({});
  first.Signal(SIGTERM);
  EXPECT_EQ(first.Wait(), 128 + SIGTERM) << first.err();
  EndJob(run);
  EXPECT_THAT(run.err(), Not(HasSubstr("was lost")));
  EXPECT_THAT(KeptConnections(), IsEmpty());
}

// "I had given the name to another machine, and the job still ran on the old one."
TEST_F(KeptConnectionsTest, NameThatNowMeansAnotherMachineReachesThatOne) {
  for (const std::string address : {"10.98.0.1", "10.98.0.2"}) {
    const std::string config = ReadAll(Path("hosts/ssh_config"));
    Write("hosts/ssh_config", "Host worker\n  User root\n  HostName " + address +
                                  "\n  IdentityFile " + Path("hosts/user_key") +
                                  "\n  UserKnownHostsFile " + Path("hosts/known_hosts") + "\n" +
                                  config);
    Command run = StartOnHosts({"--hosts=worker"}, "hostname");
    EXPECT_EQ(run.Wait(), 0) << run.err();
    EXPECT_EQ(run.out(), address == "10.98.0.1" ? "[default0]:node0\n" : "[default0]:node1\n");
  }
  EXPECT_THAT(KeptConnections(), SizeIs(2));
}

// "The doctor found nothing, and the next job could not log in."
TEST_F(KeptConnectionsTest, DoctorLogsInByItself) {
  Command run = StartOnHosts({"--hosts=node0"}, "true");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  ASSERT_TRUE(OnHost(-1, "mv " + Path("hosts/authorized_keys") + " " + Path("away")));
  Command doctor = StartWhereTyped({MusterPath(), "doctor", "--hosts=node0"});
  EXPECT_EQ(doctor.Wait(), 1) << doctor.err();
  EXPECT_THAT(doctor.out() + doctor.err(), HasSubstr("Permission denied"));
}

// sshd's MaxSessions: one more session silently uses a connection of its own.
TEST_F(KeptConnectionsTest, MoreJobsThanAConnectionMayCarryRunAllTheSame) {
  std::vector<Command> runs;
  for (int i = 0; i < 12; ++i) {
    runs.push_back(StartOnHosts({"--hosts=node0"}, "echo begun; sleep 10000 & wait"));
    EXPECT_TRUE(runs.back().WaitForOut("[default0]:begun")) << runs.back().err();
    EXPECT_EQ(runs.back().err(), "");
  }
  EXPECT_THAT(KeptConnections(), SizeIs(1));
  for (Command& run : runs) {
    run.Signal(SIGTERM);
    EXPECT_EQ(run.Wait(), 128 + SIGTERM) << run.err();
  }
  ExpectNothingLeft();
}

TEST_F(KeptConnectionsTest, EveryLineArrives) {
  constexpr int kLines = 50'000;
  for (int i = 0; i < 2; ++i) {
    Command run = StartOnHosts({"--hosts=node[0-1]"},
                               absl::StrCat("seq -f \"line %.0f of $RANK ----------\" ", kLines));
    ASSERT_TRUE(run.WaitForOut("line 1 of 0"));
    EXPECT_EQ(run.Wait(), 0) << run.err();
    std::set<std::string> lines;
    for (const std::string& line : Lines(run.out())) lines.insert(line);
    EXPECT_EQ(lines.size(), 2u * kLines);
  }
  ExpectNothingLeft();
}

// A directory that another user can write to is not used: a socket there could impersonate the
// host.
TEST_F(KeptConnectionsTest, FolderOfOthersIsLeftAlone) {
  ASSERT_TRUE(OnHost(-1, absl::StrCat("mkdir -m 0777 ", runtime_dir(), "/muster-ssh")));
  Command run = StartOnHosts({"--hosts=node0"}, "true");
  EXPECT_EQ(run.Wait(), 0) << run.err();
  EXPECT_THAT(KeptConnections(), IsEmpty());
  // sshd ends its session a moment after ssh has exited.
  EXPECT_TRUE(WaitUntil([this] { return Sessions(0).empty(); }));
}

}  // namespace
}  // namespace muster::test
