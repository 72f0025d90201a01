// Workers that hang or are stopped, unfit nodes, and failures that a restart would not fix: what
// the user is told, and what Muster does.
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/run_until.h"

namespace muster::test {
namespace {

class HangTest : public E2eTest {
 protected:
  // Python's three lines for a beat of rank $RANK.
  const std::string beat_ =
      "python3 -c 'import os, socket; socket.socket(socket.AF_UNIX, "
      "socket.SOCK_DGRAM).sendto(b\"beat "
      "%s 7\" % os.environ[\"RANK\"].encode(), os.environ[\"MUSTER_BEAT_SOCKET\"])'; ";
};

// "A rank hung in an all-reduce, and all that we had in the morning was a bill."
TEST_F(HangTest, HungWorkerLeavesEvidenceAndTheJobIsRestarted) {
  Command agent = StartAgent(
      {"--nproc-per-node=2", "--hang-timeout=0.5", "--max-restarts=1", "--log-dir=" + Path("logs"),
       "--stack-command=echo the stacks of {pid}", "--event-log=" + Path("events")},
      beat_ + "test $TORCHELASTIC_RESTART_COUNT = 1 || sleep 10000");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_TRUE(Contains(agent.err(), "gave no sign of life for "));
  EXPECT_TRUE(Contains(agent.err(), "(last step 7)"));
  EXPECT_TRUE(Contains(agent.err(), "was killed by muster (SIGKILL), as it gave no sign of life"));
  EXPECT_TRUE(Contains(agent.err(), "(restart 1 of 1)"));
  EXPECT_TRUE(Contains(agent.err(), "first beat"));
  Command evidence({"sh", "-c", "cat " + Path("logs") + "/*/attempt_0/evidence_rank*.txt"});
  EXPECT_EQ(evidence.Wait(), 0);
  EXPECT_TRUE(Contains(evidence.out(), "the stacks of "));
  Command events({"cat", Path("events")});
  EXPECT_EQ(events.Wait(), 0);
  for (const char* event : {"first_beat", "hang_detected", "evidence"}) {
    EXPECT_TRUE(Contains(events.out(), "\"event\":\"" + std::string(event) + "\""));
  }
}

// "Rank 2 was stopped, and the report said that rank 0 was to blame." All beat at the same time.
TEST_F(HangTest, OfRanksThatFallSilentTogetherTheOneThatIsStoppedIsToBlame) {
  const std::string beats =
      "python3 -c 'import os, socket\n"
      "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
      "for rank in range(3): s.sendto(b\"beat %d 7\" % rank, "
      "os.environ[\"MUSTER_BEAT_SOCKET\"])'; ";
  Command agent =
      StartAgent({"--nproc-per-node=3", "--hang-timeout=0.5", "--stack-command=true {pid}"},
                 "if test $RANK = 2; then touch " + Path("ready") +
                     "; kill -STOP $$; fi; if test $RANK = 0; " + "then until test -e " +
                     Path("ready") + "; do sleep 0.02; done; " + beats + "fi; " + "sleep 10000");
  EXPECT_EQ(agent.Wait(), 1) << agent.err();
  EXPECT_TRUE(Contains(ReportField(agent.err(), "rank"), "2 (local_rank: 2)")) << agent.err();
}

TEST_F(HangTest, HungWorkerEndsTheJobWhereTheUserSaysSo) {
  Command agent = StartAgent(
      {"--hang-timeout=0.3", "--hang-action=end", "--max-restarts=5", "--stack-command=true {pid}"},
      beat_ + "sleep 10000");
  EXPECT_EQ(agent.Wait(), 1) << agent.err();
  EXPECT_TRUE(Contains(agent.err(), "1 round, 0 restarts"));
  EXPECT_TRUE(Contains(ReportField(agent.err(), "reason"), "it gave no sign of life for "));
}

TEST_F(HangTest, HungWorkerIsOnlyReportedWhereTheUserSaysSo) {
  Command agent =
      StartAgent({"--hang-timeout=0.3", "--hang-action=report", "--stack-command=true {pid}"},
                 beat_ + "while ! test -e " + Path("end") + "; do sleep 0.02; done");
  ASSERT_TRUE(agent.WaitForErr("stack traces of rank 0: ")) << agent.err();
  Write("end", "");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
}

// A rank that hung, and was only reported, was shown by nothing but its agent's terminal.
TEST_F(HangTest, HungWorkerIsShownUntilItGivesASignOfLife) {
  const Daemon daemon = StartDaemon();
  Command agent = StartAgent(
      {"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + daemon.endpoint, "--hang-timeout=0.5",
       "--hang-signs=output", "--hang-action=report", "--stack-command=true {pid}"},
      "echo up; while ! test -e " + Path("more") + "; do sleep 0.02; done; while ! test -e " +
          Path("end") + "; do echo more; sleep 0.05; done");
  ASSERT_TRUE(agent.WaitForErr("rank 0 gave no sign of life for ")) << agent.err();
  const auto is_shown = [&] {
    Command status({MusterPath(), "status", "--rdzv-endpoint=" + daemon.endpoint, "job"});
    EXPECT_EQ(status.Wait(), 0) << status.err();
    return status.out().find(" ago  gave no sign of life for ") != std::string::npos;
  };
  EXPECT_TRUE(WaitUntil(is_shown));
  Write("more", "");
  EXPECT_TRUE(WaitUntil([&] { return !is_shown(); }));
  Write("end", "");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
}

// A program that knows nothing of beats is not killed for that.
TEST_F(HangTest, WorkerThatNeverBeatsIsNotWatchedUnlessAsked) {
  const std::string script = "while ! test -e " + Path("end") + "; do sleep 0.02; done";
  Command left_alone = StartAgent({"--hang-timeout=0.1"}, script);
  Command watched = StartAgent(
      {"--hang-timeout=0.1", "--hang-first-beat-timeout=0.5", "--stack-command=true {pid}"},
      script);
  EXPECT_EQ(watched.Wait(), 1) << watched.err();
  EXPECT_TRUE(Contains(watched.err(), "gave no sign of life for "));
  Write("end", "");
  EXPECT_EQ(left_alone.Wait(), 0) << left_alone.err();
}

TEST_F(HangTest, OutputIsASignOfLifeWhereTheUserSaysSo) {
  Command agent =
      StartAgent({"--hang-timeout=0.5", "--hang-signs=output", "--stack-command=true {pid}"},
                 "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.2; done; sleep 10000");
  EXPECT_EQ(agent.Wait(), 1) << agent.err();
  EXPECT_TRUE(Contains(agent.out(), "8\n")) << "it was alive until then";
}

TEST_F(HangTest, StoppedWorkerIsNamed) {
  Command agent = StartAgent({}, "echo $$ >" + Path("pid") + "; kill -STOP $$; echo goes on");
  ASSERT_TRUE(agent.WaitForErr("was stopped by SIGSTOP")) << agent.err();
  Command wake({"sh", "-c", "kill -CONT $(cat " + Path("pid") + ")"});
  EXPECT_EQ(wake.Wait(), 0);
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_TRUE(Contains(agent.out(), "goes on"));
}

// "The node with the broken GPU took part again and again, and spent every restart."
TEST_F(HangTest, UnfitNodeIsNotAdmittedAndASpareTakesItsPlace) {
  Daemon daemon = StartDaemon();
  const std::string fit = Path("fit");
  Write("fit", "");
  const auto flags = [&](const std::string& check) {
    return std::vector<std::string>{"--nnodes=2", "--rdzv-id=job",
                                    "--rdzv-endpoint=" + daemon.endpoint, "--max-restarts=1",
                                    "--health-check=" + check};
  };
  const std::string script =
      "echo rank $RANK of $WORLD_SIZE; test $TORCHELASTIC_RESTART_COUNT = 1 && exit 0; "
      "while test -e " +
      fit + "; do sleep 0.02; done; exit 6";
  Command stays = StartAgent(flags("true"), script);
  Command breaks = StartAgent(flags("test -e " + fit + " || { echo no devices; exit 9; }"), script);
  ASSERT_TRUE(stays.WaitForOut("of 2") && breaks.WaitForOut("of 2")) << stays.err();
  Command spare = StartAgent(flags("true"), script);
  ASSERT_TRUE(spare.WaitForErr("this node is a spare")) << spare.err();

  Command unfit({"rm", fit});
  EXPECT_EQ(unfit.Wait(), 0);
  EXPECT_EQ(breaks.Wait(), 3) << breaks.err();
  EXPECT_TRUE(Contains(breaks.err(), "this node cannot take part: the health check"));
  EXPECT_EQ(stays.Wait(), 0) << stays.err();
  EXPECT_EQ(spare.Wait(), 0) << spare.err();
  for (const Command* other : {&stays, &spare}) {
    EXPECT_TRUE(Contains(other->err(), "does not take part: the health check 'test -e "));
    EXPECT_TRUE(Contains(other->err(), "exited with code 9: no devices"));
  }
}

TEST_F(HangTest, HealthCheckThatHangsIsAFailedOne) {
  Command agent = StartAgent({"--health-check=sleep 10000", "--health-check-timeout=0.2"}, "true");
  EXPECT_EQ(agent.Wait(), 3);
  EXPECT_TRUE(Contains(agent.err(), "the health check 'sleep 10000' did not end within"));
}

TEST_F(HangTest, ExitCodeThatMustNotBeRetriedEndsTheJob) {
  Command agent = StartAgent({"--max-restarts=5", "--no-retry-exit-codes=2,64-78"}, "exit 65");
  EXPECT_EQ(agent.Wait(), 1);
  EXPECT_TRUE(Contains(agent.err(), "1 round, 0 restarts"));
}

TEST_F(HangTest, SameFailureBeforeTheFirstBeatEndsTheJob) {
  Command agent = StartAgent({"--max-restarts=9", "--no-progress-limit=3"}, "echo attempt; exit 3");
  EXPECT_EQ(agent.Wait(), 1);
  EXPECT_EQ(Lines(agent.out()).size(), 3u) << agent.out();
}

TEST_F(HangTest, DelayedRestartSaysSo) {
  Command agent = StartAgent({"--max-restarts=1", "--restart-delay=0.2"},
                             "test $TORCHELASTIC_RESTART_COUNT = 1");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_TRUE(Contains(agent.err(), "(restart 1 of 1, after 200 ms)"));
}

}  // namespace
}  // namespace muster::test
