// The faults F1 to F16 of docs/faults.md in a job that one command started by ssh. The tree is a
// chain: two links lie between the command and the last host, and faults of a host, a node or a
// worker there must be handled and reported across both. When a job is over, nothing of it is left
// on any host.
//
// scripts/chaos.sh measures; this test does not.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/ssh_hosts.h"
#include "test/support/process_scan.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

// Prints where it is, and stays.
constexpr char kHostsFaultsStays[] =
    "echo worker $RANK of $WORLD_SIZE in round $MUSTER_ROUND after $TORCHELASTIC_RESTART_COUNT; "
    "sleep 10000 & wait";

class HostsFaultsTest : public SshHostsTest {
 protected:
  void SetUp() override { MakeHosts(3); }

  // A job of three hosts, each of which starts the next, with two workers each.
  Command StartJob(std::vector<std::string> flags, const std::string& script) {
    flags.insert(flags.begin(),
                 {"--hosts=node[0-2]:2", "--fanout=1", "--rdzv-conf=last_call_timeout=25"});
    return StartOnHosts(flags, script);
  }

  // The workers of a round have printed where they are.
  static testing::AssertionResult Run(Command& job, int workers, int round, int restarts) {
    for (int rank = 0; rank < workers; ++rank) {
      const std::string line = "worker " + std::to_string(rank) + " of " + std::to_string(workers) +
                               " in round " + std::to_string(round) + " after " +
                               std::to_string(restarts) + "\n";
      if (!job.WaitForOut(line)) {
        return testing::AssertionFailure() << "no " << line << job.out() << job.err();
      }
    }
    return testing::AssertionSuccess();
  }

  // The test's processes with that name on a host.
  std::vector<pid_t> Named(int host, const std::string& name) const {
    std::vector<pid_t> found;
    for (const pid_t pid : Processes(host, "")) {
      std::string comm;
      std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> comm;
      if (comm == name) found.push_back(pid);
    }
    return found;
  }

  // The agent, without its guards and Muster's part in the tree.
  std::vector<pid_t> Agents(int host) const {
    std::vector<pid_t> found;
    for (const pid_t pid : Named(host, "muster")) {
      const std::vector<pid_t> nodes = Processes(host, " run --prefix");
      if (std::count(nodes.begin(), nodes.end(), pid) > 0) found.push_back(pid);
    }
    return found;
  }
  pid_t Agent(int host) const { return First(Agents(host)); }

  // One of the host's workers.
  pid_t Worker(int host) const { return First(Named(host, "sh")); }

  // 0 if there is none; Send then sends nothing.
  static pid_t First(const std::vector<pid_t>& pids) { return pids.empty() ? 0 : pids.front(); }

  static void Send(pid_t pid, int signal) {
    // A pid below 1 would mean a group, or all processes.
    ASSERT_GT(pid, 1) << "there is no such process";
    ASSERT_EQ(kill(pid, signal), 0);
  }
};

// F1
TEST_F(HostsFaultsTest, RankThatFailsRestartsTheJobOnAllHostsOnce) {
  Command job =
      StartJob({"--max-restarts=1"},
               std::string("[ $MUSTER_ROUND$RANK = 03 ] && exit 3; ") + kHostsFaultsStays);
  EXPECT_TRUE(Run(job, 6, 1, 1));
  EndJob(job);
}

TEST_F(HostsFaultsTest, RankThatFailsForGoodIsNamedWithHostAndCode) {
  Command job = StartJob({"--exit-code=worker"},
                         "[ $RANK = 5 ] && { echo it breaks >&2; exit 3; }; sleep 10000 & wait");
  EXPECT_EQ(job.Wait(), 3) << job.err();
  EXPECT_EQ(ReportField(job.err(), "rank"), "5 (local_rank: 1)") << job.err();
  ExpectNothingLeft();
}

// F2
TEST_F(HostsFaultsTest, RankThatIsKilledRestartsTheJobOnce) {
  Command job = StartJob({"--max-restarts=1"}, kHostsFaultsStays);
  ASSERT_TRUE(Run(job, 6, 0, 0));
  Send(Worker(2), SIGKILL);
  EXPECT_TRUE(Run(job, 6, 1, 1));
  EndJob(job);
}

// F3
TEST_F(HostsFaultsTest, RankThatIsStoppedIsNamedAndNothingIsRestarted) {
  Command job = StartJob({"--max-restarts=1"}, kHostsFaultsStays);
  ASSERT_TRUE(Run(job, 6, 0, 0));
  const pid_t worker = Worker(2);
  Send(worker, SIGSTOP);
  EXPECT_TRUE(job.WaitForErr("(pid " + std::to_string(worker) + ") was stopped by SIGSTOP"))
      << job.err();
  Send(worker, SIGCONT);
  EXPECT_TRUE(job.WaitForErr("(pid " + std::to_string(worker) + ") was continued")) << job.err();
  EndJob(job);
  EXPECT_EQ(job.out().find("in round 1"), std::string::npos);
}

// F4
TEST_F(HostsFaultsTest, RankThatHangsLeavesEvidenceAndRestartsTheJobOnce) {
  Command job =
      StartJob({"--max-restarts=1", "--hang-timeout=0.5", "--stack-command=true {pid}"},
               std::string("[ $MUSTER_ROUND$RANK = 04 ] && python3 -c 'import os, socket; "
                           "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b\"beat 4 7\", "
                           "os.environ[\"MUSTER_BEAT_SOCKET\"])'; ") +
                   kHostsFaultsStays);
  EXPECT_TRUE(job.WaitForErr("gave no sign of life for ")) << job.err();
  EXPECT_TRUE(Run(job, 6, 1, 1));
  EndJob(job);
}

// F5
TEST_F(HostsFaultsTest, WorkersThatIgnoreSigtermAreKilledOnAllHosts) {
  Command job =
      StartJob({"--max-restarts=1", "--shutdown-timeout=1"},
               "trap '' TERM; echo worker $RANK of $WORLD_SIZE in round $MUSTER_ROUND after "
               "$TORCHELASTIC_RESTART_COUNT; until [ $MUSTER_ROUND$RANK = 03 -a -e " +
                   Path("breaks") + " ]; do sleep 0.1; done; exit 3");
  ASSERT_TRUE(Run(job, 6, 0, 0));
  Write("breaks", "");
  EXPECT_TRUE(Run(job, 6, 1, 1));
  EndJob(job);
}

// F6
TEST_F(HostsFaultsTest, RankThatCannotBeKilledIsNamedAndTheOthersGoOn) {
  // In a frozen control group of version 1 a process is in state D.
  const std::string group =
      "/sys/fs/cgroup/freezer/muster-hosts-faults-" + std::to_string(getpid());
  if (mkdir(group.c_str(), 0755) != 0) GTEST_SKIP() << "there is no freezer (control groups 1)";
  Command job =
      StartJob({"--max-restarts=1", "--nnodes=2:3", "--shutdown-timeout=1"}, kHostsFaultsStays);
  EXPECT_TRUE(Run(job, 6, 0, 0));
  const pid_t stuck = Worker(2);
  EXPECT_GT(stuck, 1);
  std::ofstream(group + "/cgroup.procs") << stuck;
  std::ofstream(group + "/freezer.state") << "FROZEN";
  Send(Worker(0), SIGKILL);
  EXPECT_TRUE(job.WaitForErr("SIGKILL and is left behind")) << job.err();
  EXPECT_TRUE(Run(job, 4, 1, 1));
  std::ofstream(group + "/freezer.state") << "THAWED";
  EndJob(job);
  EXPECT_TRUE(WaitUntil([&] { return rmdir(group.c_str()) == 0; }));
}

// F7
TEST_F(HostsFaultsTest, WhatAWorkerLeavesBehindIsGoneBeforeTheNextRound) {
  Command job =
      StartJob({"--max-restarts=1"},
               "setsid -f sleep 1111$MUSTER_ROUND; echo worker $RANK of $WORLD_SIZE in round "
               "$MUSTER_ROUND after $TORCHELASTIC_RESTART_COUNT; sleep 10000 & wait");
  ASSERT_TRUE(Run(job, 6, 0, 0));
  // A process that is within execve() has no command line to find it by.
  ASSERT_TRUE(WaitUntil([&] { return Processes(2, "sleep 11110").size() == 2; }));
  Send(Worker(1), SIGKILL);
  ASSERT_TRUE(job.WaitForOut("in round 1")) << job.out() << job.err();
  for (int host = 0; host < 3; ++host) EXPECT_TRUE(Processes(host, "sleep 11110").empty()) << host;
  EndJob(job);
}

// F8. "The agent of one node was killed for its memory, and the job went on without that host for
// the rest of the night."
TEST_F(HostsFaultsTest, NodeWhoseAgentIsKilledIsStartedAgain) {
  Command job = StartJob({"--nnodes=2:3"}, kHostsFaultsStays);
  ASSERT_TRUE(Run(job, 6, 0, 0));
  const pid_t worker = Worker(1);
  ASSERT_GT(worker, 1);
  Send(Agent(1), SIGKILL);
  EXPECT_TRUE(job.WaitForErr("node1: the node was killed by SIGKILL and is started again"))
      << job.err();
  EXPECT_TRUE(Run(job, 4, 1, 0));
  const std::vector<pid_t> alive = ProcessesWith(mark());
  EXPECT_EQ(std::count(alive.begin(), alive.end(), worker), 0) << "its worker lives";
  EXPECT_TRUE(Run(job, 6, 2, 0));
  EndJob(job);
}

// "It ended with 137, and all it said was that a connection broke."
TEST_F(HostsFaultsTest, KilledAgentThatServesTheRendezvousIsNamed) {
  Command job = StartJob({}, kHostsFaultsStays);
  ASSERT_TRUE(Run(job, 6, 0, 0));
  Send(Agent(0), SIGKILL);
  EXPECT_EQ(job.Wait(), 128 + SIGKILL);
  EXPECT_TRUE(Contains(job.err(), "muster run: the node on node0 was killed by signal 9\n"));
  ExpectNothingLeft();
}

// F9
TEST_F(HostsFaultsTest, NodeThatIsDrainedLeavesAndTheOthersGoOn) {
  Command job = StartJob({"--nnodes=2:3"}, kHostsFaultsStays);
  ASSERT_TRUE(Run(job, 6, 0, 0));
  Send(Agent(1), SIGTERM);
  EXPECT_TRUE(Run(job, 4, 1, 0));
  // The others start once its workers are dead, perhaps before the node has exited.
  EXPECT_TRUE(WaitUntil([&] { return Agents(1).empty(); }));
  EndJob(job);
}

// F10, F11
TEST_F(HostsFaultsTest, NodeThatStandsStillForLongerThanItsLeaseComesBack) {
  Command job = StartJob({"--nnodes=2:3"}, kHostsFaultsStays);
  ASSERT_TRUE(Run(job, 6, 0, 0));
  const pid_t agent = Agent(2);
  Send(agent, SIGSTOP);
  sleep(1);
  Send(agent, SIGCONT);
  Send(agent, SIGSTOP);
  EXPECT_TRUE(Run(job, 4, 1, 0));
  EXPECT_TRUE(Named(2, "sleep").empty());
  Send(agent, SIGCONT);
  EXPECT_TRUE(Run(job, 6, 2, 0));
  EndJob(job);
}

// F12, F16. The process that started the host notices within 20 s of silence that it is gone.
TEST_F(HostsFaultsTest, HostThatLosesPowerIsLeftOutAndStartedAgainWhenItIsBack) {
  Command job = StartJob({"--nnodes=2:3"}, kHostsFaultsStays);
  ASSERT_TRUE(Run(job, 6, 0, 0));
  SetCable(2, false);
  PowerOff(2);
  EXPECT_TRUE(Run(job, 4, 1, 0));
  SetCable(2, true);
  EXPECT_TRUE(job.WaitForErr("muster run: node2 was lost: ")) << job.err();
  EXPECT_TRUE(Run(job, 6, 2, 0));
  EndJob(job);
}

// F13
TEST_F(HostsFaultsTest, HostWhoseCableIsPulledComesBackWithIt) {
  Command job = StartJob({"--nnodes=2:3"}, kHostsFaultsStays);
  ASSERT_TRUE(Run(job, 6, 0, 0));
  SetCable(2, false);
  EXPECT_TRUE(Run(job, 4, 1, 0));
  EXPECT_TRUE(Named(2, "sleep").empty());
  SetCable(2, true);
  EXPECT_TRUE(Run(job, 6, 2, 0));
  EndJob(job);
  EXPECT_EQ(job.err().find("muster run: node2 was lost"), std::string::npos) << job.err();
}

// F14, F15: on which host packets are lost, and whose.
class OneWayLossTest : public HostsFaultsTest,
                       public testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(OneWayLossTest, NodeIsLeftOutAndComesBack) {
  const auto& [host, from] = GetParam();
  if (!Succeeds({"sh", "-c", "command -v iptables"})) GTEST_SKIP() << "there is no iptables";
  Command job = StartJob({"--nnodes=2:3"}, kHostsFaultsStays);
  ASSERT_TRUE(Run(job, 6, 0, 0));
  const std::string rule = " INPUT -s 10.98.0." + std::to_string(from + 1) + " -j DROP";
  ASSERT_TRUE(OnHost(host, "iptables -A" + rule));
  EXPECT_TRUE(Run(job, 4, 1, 0));
  EXPECT_TRUE(Named(2, "sleep").empty());
  ASSERT_TRUE(OnHost(host, "iptables -D" + rule));
  EXPECT_TRUE(Run(job, 6, 2, 0));
  EndJob(job);
}

INSTANTIATE_TEST_SUITE_P(Ways, OneWayLossTest, testing::Values(std::pair(0, 2), std::pair(2, 0)),
                         [](const auto& info) {
                           return std::string(info.param.first == 0 ? "NodeIsNotHeard"
                                                                    : "NodeDoesNotHear");
                         });

// The processes that KilledProcessTest (hosts_e2e_test.cc) does not kill, one at a time.
TEST_F(HostsFaultsTest, GuardThatIsKilledLeavesNothingBehind) {
  Command job = StartJob({}, kHostsFaultsStays);
  ASSERT_TRUE(Run(job, 6, 0, 0));
  const std::vector<pid_t> guards = Named(2, "orphan-guard");
  ASSERT_FALSE(guards.empty());
  for (const pid_t pid : guards) Send(pid, SIGKILL);
  EndJob(job);
}

TEST_F(HostsFaultsTest, SessionOfSshdThatIsKilledLeavesNothingBehind) {
  Command job = StartJob({}, kHostsFaultsStays);
  ASSERT_TRUE(Run(job, 6, 0, 0));
  for (const pid_t pid : Sessions(1)) Send(pid, SIGKILL);
  // The last host is beyond it.
  EXPECT_TRUE(job.WaitForErr("muster run: node2 was lost: ")) << job.err();
  EXPECT_TRUE(Run(job, 6, 1, 0));
  EndJob(job);
}

}  // namespace
}  // namespace muster::test
