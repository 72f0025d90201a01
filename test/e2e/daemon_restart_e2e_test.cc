// A daemon that dies or is stopped, and is started again: running jobs do not notice, and nothing
// it has said is taken back.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"

namespace muster::test {
namespace {

class DaemonRestartTest : public E2eTest {
 protected:
  void StartDaemonOn(const std::string& state) {
    daemon_.emplace(std::vector<std::string>{DaemonPath(), "--listen=" + port_.endpoint(),
                                             "--state-dir=" + Path(state)});
    ASSERT_TRUE(daemon_->WaitForErr("listening on")) << daemon_->err();
  }

  // The keeper, and with it the daemon; nobody starts that again.
  void KillKeeper() {
    daemon_->Signal(SIGKILL);
    EXPECT_EQ(daemon_->Wait(), -SIGKILL);
  }

  // The daemon alone.
  void KillDaemon() {
    const std::vector<pid_t> children = ChildrenOf(daemon_->pid());
    ASSERT_EQ(children.size(), 1u);
    kill(children.front(), SIGKILL);
  }

  std::vector<std::string> Flags(const std::vector<std::string>& more = {}) const {
    // This machine's own address: who is told not to host looks for a musterd there.
    std::vector<std::string> flags = {"--nnodes=2", "--rdzv-id=job",
                                      "--rdzv-endpoint=" + port_.endpoint(),
                                      "--rdzv-conf=is_host=0"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  // A script that says who it is and ends when a file is there.
  std::string WaitsFor(const std::string& file) const {
    return "echo rank $RANK restart $TORCHELASTIC_RESTART_COUNT; while ! test -e " + Path(file) +
           "; do sleep 0.02; done";
  }

  HeldPort port_;
  std::optional<Command> daemon_;
};

// "The machine with the rendezvous was rebooted, and a run of three weeks was gone."
TEST_F(DaemonRestartTest, WorkersRunThroughWhenTheDaemonIsKilledAndStartedAgain) {
  StartDaemonOn("state");
  Command one = StartAgent(Flags(), WaitsFor("end"));
  Command other = StartAgent(Flags(), WaitsFor("end"));
  ASSERT_TRUE(one.WaitForOut("rank ") && other.WaitForOut("rank ")) << one.err() << other.err();
  KillDaemon();
  ASSERT_TRUE(daemon_->WaitForErr("the daemon was killed by SIGKILL; starting it again\n"));
  ASSERT_TRUE(daemon_->WaitForErr("1 job with 2 nodes remembered in ")) << daemon_->err();
  ASSERT_TRUE(one.WaitForErr("reconnected to the rendezvous")) << one.err();
  ASSERT_TRUE(other.WaitForErr("reconnected to the rendezvous")) << other.err();
  KillDaemon();
  ASSERT_TRUE(daemon_->WaitForErr("killed by SIGKILL; starting it again in 100 ms"));
  Write("end", "");
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_EQ(other.Wait(), 0) << other.err();
  for (const Command* agent : {&one, &other}) {
    EXPECT_EQ(Lines(agent->out()).size(), 1u) << agent->out();
  }
}

// "The disk was full for a second, and the job was lost."
TEST_F(DaemonRestartTest, FailureDuringTheOutageIsReportedAfterIt) {
  StartDaemonOn("state");
  const std::string script = WaitsFor("fail") + "; test $TORCHELASTIC_RESTART_COUNT = 1 || exit 5";
  Command one = StartAgent(Flags({"--max-restarts=1"}), script);
  Command other = StartAgent(Flags({"--max-restarts=1"}), script);
  ASSERT_TRUE(one.WaitForOut("rank ") && other.WaitForOut("rank "));
  // The journal is behind a link that leads nowhere: the daemon can't start before it is back.
  std::filesystem::rename(Path("state/journal.db"), Path("state/kept"));
  std::filesystem::create_symlink(Path("nowhere/nothing"), Path("state/journal.db"));
  KillDaemon();
  ASSERT_TRUE(daemon_->WaitForErr("the daemon exited with code 4; starting it again in"));
  Write("fail", "");
  ASSERT_TRUE(one.WaitForErr("exited with code 5")) << one.err();
  std::filesystem::rename(Path("state/kept"), Path("state/journal.db"));
  EXPECT_EQ(one.Wait(), 0) << one.err() << daemon_->err();
  EXPECT_EQ(other.Wait(), 0) << other.err();
  EXPECT_TRUE(Contains(one.out(), "restart 1"));
  EXPECT_TRUE(Contains(one.err(), "(restart 1 of 1)"));
}

// Told to stop, it leaves its jobs to the next start: a restart for an upgrade is no end.
TEST_F(DaemonRestartTest, DaemonThatIsToldToStopLeavesItsJobsToTheNextStart) {
  StartDaemonOn("state");
  Command one = StartAgent(Flags(), WaitsFor("end"));
  Command other = StartAgent(Flags(), WaitsFor("end"));
  ASSERT_TRUE(one.WaitForOut("rank ") && other.WaitForOut("rank "));
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0) << daemon_->err();
  EXPECT_TRUE(Contains(daemon_->err(), "1 job with 2 nodes left for the next start"));
  StartDaemonOn("state");
  ASSERT_TRUE(one.WaitForErr("reconnected to the rendezvous")) << one.err();
  Write("end", "");
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_EQ(other.Wait(), 0) << other.err();
}

// An upgrade: the port stays, and the program that is there now comes next.
TEST_F(DaemonRestartTest, HangupStartsTheDaemonAgainInPlace) {
  StartDaemonOn("state");
  Command one = StartAgent(Flags(), WaitsFor("end"));
  Command other = StartAgent(Flags(), WaitsFor("end"));
  ASSERT_TRUE(one.WaitForOut("rank ") && other.WaitForOut("rank "));
  const std::vector<pid_t> before = ChildrenOf(daemon_->pid());
  daemon_->Signal(SIGHUP);
  ASSERT_TRUE(daemon_->WaitForErr("1 job with 2 nodes left for the next start"));
  ASSERT_TRUE(daemon_->WaitForErr("1 job with 2 nodes remembered in ")) << daemon_->err();
  EXPECT_NE(ChildrenOf(daemon_->pid()), before);
  ASSERT_TRUE(one.WaitForErr("reconnected to the rendezvous")) << one.err();
  Write("end", "");
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_EQ(other.Wait(), 0) << other.err();
  EXPECT_EQ(Lines(one.out()).size(), 1u) << one.out();
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0) << daemon_->err();
}

// A daemon that has lost what it knew gives every place away: its nodes must not go on. Nor may
// they begin the job anew, as it may have ended.
TEST_F(DaemonRestartTest, DaemonThatHasForgottenTheJobTakesNobodyBackWhoRanInIt) {
  StartDaemonOn("state");
  Command one = StartAgent(Flags(), WaitsFor("end"));
  Command other = StartAgent(Flags(), WaitsFor("end"));
  ASSERT_TRUE(one.WaitForOut("rank ") && other.WaitForOut("rank "));
  KillKeeper();
  StartDaemonOn("another_state");
  for (Command* agent : {&one, &other}) {
    EXPECT_EQ(agent->Wait(), 3) << agent->err();
    EXPECT_TRUE(
        Contains(agent->err(), "does not know this node, or no longer does; killing its workers"));
    EXPECT_TRUE(Contains(agent->err(),
                         "the job 'job' in which this node ran workers has ended, and how is "
                         "not known any more"));
    EXPECT_EQ(Lines(agent->out()).size(), 1u) << agent->out();
  }
}

TEST_F(DaemonRestartTest, SecondDaemonOnTheSameDirectoryRefuses) {
  StartDaemonOn("state");
  Command second({DaemonPath(), "--listen=127.0.0.1:0", "--state-dir=" + Path("state")});
  EXPECT_EQ(second.Wait(), 4);
  EXPECT_EQ(Lines(second.err()).size(), 1u) << second.err();
  EXPECT_TRUE(Contains(second.err(), std::to_string(daemon_->pid())));
  KillKeeper();
}

// "kill -9, and at once the next start: the directory was in use by a process that was dead."
TEST_F(DaemonRestartTest, NextKeeperTakesOverFromOneThatIsDying) {
  StartDaemonOn("state");
  daemon_->Signal(SIGKILL);
  Command next({DaemonPath(), "--listen=" + port_.endpoint(), "--state-dir=" + Path("state")});
  EXPECT_TRUE(next.WaitForErr("listening on")) << next.err();
  EXPECT_EQ(daemon_->Wait(), -SIGKILL);
  next.Signal(SIGTERM);
  EXPECT_EQ(next.Wait(), 0);
}

// What answers for a killed daemon without a state directory must not keep the next one out.
TEST_F(DaemonRestartTest, ForgetfulDaemonMakesRoomForTheNextAtOnce) {
  Command first({DaemonPath(), "--listen=" + port_.endpoint()});
  ASSERT_TRUE(first.WaitForErr("listening on")) << first.err();
  first.Signal(SIGKILL);
  Command next({DaemonPath(), "--listen=" + port_.endpoint()});
  EXPECT_TRUE(next.WaitForErr("listening on")) << next.err();
  next.Signal(SIGTERM);
  EXPECT_EQ(next.Wait(), 0);
}

TEST_F(DaemonRestartTest, DamagedJournalIsRefusedWithOneSentence) {
  StartDaemonOn("state");
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0);
  {
    std::fstream file(Path("state/journal.db"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.write("damage", 6);
    ASSERT_TRUE(file.good());
  }
  Command again({DaemonPath(), "--listen=127.0.0.1:0", "--state-dir=" + Path("state")});
  EXPECT_EQ(again.Wait(), 4) << again.err();
  EXPECT_EQ(Lines(again.err()).size(), 1u) << again.err();
  EXPECT_TRUE(Contains(again.err(), "journal.db"));
}

}  // namespace
}  // namespace muster::test
