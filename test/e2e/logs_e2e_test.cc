// `muster logs`: what workers print, read elsewhere while they run, of two nodes on this machine,
// each with a log directory of its own.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/run_until.h"

namespace muster::test {
namespace {

using Words = std::vector<std::string>;

class LogsTest : public E2eTest {
 protected:
  // A node of the job, whose workers' output goes to files of its own.
  Command StartNode(const std::string& name, const std::string& script, Words more = {}) {
    Words flags = {"--nnodes=2", "--rdzv-id=job", "--rdzv-endpoint=" + daemon_.endpoint, "--tee=3",
                   "--log-dir=" + Path(name)};
    flags.insert(flags.end(), more.begin(), more.end());
    return StartAgent(flags, script);
  }
  Words LogsArgv(Words more = {}) const {
    Words argv = {MusterPath(), "logs", "--rdzv-endpoint=" + daemon_.endpoint, "job"};
    argv.insert(argv.end(), more.begin(), more.end());
    return argv;
  }
  Command StartLogs(Words more = {}) const { return Command(LogsArgv(std::move(more))); }

  std::string WaitsFor(const std::string& file) const {
    return "while ! test -e " + Path(file) + "; do sleep 0.02; done";
  }

  // What it had at most, in KiB.
  static long PeakOf(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string word; status >> word;) {
      long kib = 0;
      if (word == "VmHWM:" && status >> kib) return kib;
    }
    return 0;
  }

  Daemon daemon_ = StartDaemon();
};

TEST_F(LogsTest, EachRanksOutputComesFromItsOwnNode) {
  const std::string script =
      "echo out of $RANK; echo err of $RANK >&2; touch " + Path("up") + "$RANK; " + WaitsFor("end");
  Command one = StartNode("a", script);
  Command other = StartNode("b", script);
  ASSERT_TRUE(one.WaitForOut("out of ")) << one.err();
  ASSERT_TRUE(other.WaitForOut("out of ")) << other.err();
  ASSERT_TRUE(one.WaitForErr("err of ") && other.WaitForErr("err of "));

  Command all = StartLogs();
  EXPECT_EQ(all.Wait(), 0) << all.err();
  EXPECT_EQ(all.out(), "[0]: out of 0\n[0]: err of 0\n[1]: out of 1\n[1]: err of 1\n");
  EXPECT_EQ(all.err(), "");
  Command rank1 = StartLogs({"--rank=1", "--stdout"});
  EXPECT_EQ(rank1.Wait(), 0) << rank1.err();
  EXPECT_EQ(rank1.out(), "out of 1\n");
  Command no_rank = StartLogs({"--rank=2"});
  EXPECT_EQ(no_rank.Wait(), 1);
  EXPECT_EQ(no_rank.err(), "muster logs: " + daemon_.endpoint +
                               ": round 0 of job 'job' has ranks 0 to 1, and no rank 2\n");
  Write("end", "");
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_EQ(other.Wait(), 0) << other.err();
  Command gone = StartLogs();
  EXPECT_EQ(gone.Wait(), 1);
  EXPECT_TRUE(Contains(gone.err(), "no job 'job' here"));
}

TEST_F(LogsTest, FollowedLinesComeAsTheyAreWrittenAndAcrossARestart) {
  const std::string script = "echo attempt $TORCHELASTIC_RESTART_COUNT begins\n" +
                             WaitsFor("go$TORCHELASTIC_RESTART_COUNT") +
                             "\necho attempt $TORCHELASTIC_RESTART_COUNT goes on\n" +
                             "test $TORCHELASTIC_RESTART_COUNT = 1 || test $RANK = 0 || exit 3\n" +
                             "test $TORCHELASTIC_RESTART_COUNT = 1 || sleep 10000\n";
  Command one = StartNode("a", script, {"--max-restarts=1"});
  ASSERT_TRUE(one.WaitForErr("waiting for 1 more")) << one.err();
  // Before there is a round.
  Command logs = StartLogs({"-f"});
  Command other = StartNode("b", script, {"--max-restarts=1"});
  ASSERT_TRUE(logs.WaitForOut("[1]: attempt 0 begins\n")) << logs.err();
  Write("go0", "");
  ASSERT_TRUE(logs.WaitForOut("[1]: attempt 0 goes on\n")) << logs.err();
  ASSERT_TRUE(logs.WaitForErr("muster logs: round 1 begins: rank 1 on host ")) << logs.err();
  ASSERT_TRUE(logs.WaitForOut("[1]: attempt 1 begins\n")) << logs.err();
  Command before = StartLogs({"--previous", "--rank=1"});
  EXPECT_EQ(before.Wait(), 0) << before.err();
  EXPECT_EQ(before.out(), "attempt 0 begins\nattempt 0 goes on\n");
  Command tail = StartLogs({"--round=0", "--rank=1", "--tail=1"});
  EXPECT_EQ(tail.Wait(), 0) << tail.err();
  EXPECT_EQ(tail.out(), "attempt 0 goes on\n");
  Write("go1", "");
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_EQ(other.Wait(), 0) << other.err();
  EXPECT_EQ(logs.Wait(), 0) << logs.err();
  EXPECT_TRUE(Contains(logs.out(), "[0]: attempt 1 goes on\n"));
  EXPECT_TRUE(Contains(logs.out(), "[1]: attempt 1 goes on\n"));
}

// "muster logs -f said that the host keeps nothing of the round that had just begun." The daemon
// tells of a round when it is on disk, and asks for the output at once.
TEST_F(LogsTest, RestartIsFollowedWhereTheDaemonRemembersItsJobs) {
  const HeldPort port;
  Command daemon({DaemonPath(), "--listen=" + port.endpoint(), "--state-dir=" + Path("state")});
  ASSERT_TRUE(daemon.WaitForErr("listening on")) << daemon.err();
  Command node = StartAgent(
      {"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + port.endpoint(), "--rdzv-conf=is_host=0",
       "--max-restarts=3", "--tee=3", "--log-dir=" + Path("a")},
      "echo attempt $TORCHELASTIC_RESTART_COUNT; " + WaitsFor("go$TORCHELASTIC_RESTART_COUNT") +
          "; test $TORCHELASTIC_RESTART_COUNT = 3");
  ASSERT_TRUE(node.WaitForOut("attempt 0\n")) << node.err();
  Command logs({MusterPath(), "logs", "-f", "--rdzv-endpoint=" + port.endpoint(), "job"});
  for (int attempt = 0; attempt < 4; ++attempt) {
    const std::string number = std::to_string(attempt);
    ASSERT_TRUE(logs.WaitForOut("attempt " + number + "\n")) << logs.err();
    Write("go" + number, "");
  }
  EXPECT_EQ(logs.Wait(), 0) << logs.err();
  EXPECT_EQ(node.Wait(), 0) << node.err();
}

// "muster logs" of a job whose agent was stopped while it delivered never came back.
TEST_F(LogsTest, ReaderIsNotHeldByAnAgentThatStandsStill) {
  Command node = StartAgent(
      {"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + daemon_.endpoint, "--redirects=3",
       "--log-dir=" + Path("a")},
      "yes 0123456789abcdef | head -c 50000000; touch " + Path("written") + "; " + WaitsFor("end"));
  ASSERT_TRUE(WaitUntil([this] { return std::filesystem::exists(Path("written")); }));
  Command logs = StartLogs();
  ASSERT_TRUE(logs.WaitForOut("0123456789abcdef\n")) << logs.err();
  // What is on its way fits nowhere.
  logs.Signal(SIGSTOP);
  node.Signal(SIGSTOP);
  ASSERT_TRUE(daemon_.process.WaitForErr("was lost: ")) << daemon_.process.err();
  logs.Signal(SIGCONT);
  EXPECT_EQ(logs.Wait(), 1) << logs.err();
  EXPECT_TRUE(Contains(logs.err(),
                       "its agent no longer takes part in the job, and what it did not "
                       "bring within 10 s of that is missing"));
  Write("end", "");
  node.Signal(SIGCONT);
  node.Wait();
}

// "muster logs -f ended with the daemon", and whoever followed had to find the place again.
TEST_F(LogsTest, WhoFollowsGoesOnWhenTheDaemonIsBack) {
  const HeldPort port;
  const Words daemon_argv = {DaemonPath(), "--listen=" + port.endpoint(),
                             "--state-dir=" + Path("state")};
  auto daemon = std::make_unique<Command>(daemon_argv);
  ASSERT_TRUE(daemon->WaitForErr("listening on")) << daemon->err();
  const std::string lines = "line() { echo $RANK: $1; }; ";
  // Line 3 is printed while there is no daemon, and a line is cut by its end.
  const std::string script = lines + "line 1; printf \"$RANK: beg\"; touch " + Path("up") +
                             "$RANK; " + WaitsFor("go1") + "; echo un; line 3; touch " +
                             Path("said") + "$RANK; " + WaitsFor("go2") + "; line 4; " +
                             WaitsFor("go3") + "; test $TORCHELASTIC_RESTART_COUNT = 1";
  const Words flags = {"--nnodes=2",
                       "--rdzv-id=job",
                       "--rdzv-endpoint=" + port.endpoint(),
                       "--rdzv-conf=is_host=0",
                       "--max-restarts=1",
                       "--redirects=3",
                       "--log-dir=" + Path("logs")};
  Command one = StartAgent(flags, script);
  Command other = StartAgent(flags, script);
  const auto exist = [this](const std::string& name) {
    return WaitUntil([this, name] {
      return std::filesystem::exists(Path(name + "0")) && std::filesystem::exists(Path(name + "1"));
    });
  };
  ASSERT_TRUE(exist("up")) << one.err() << other.err();
  Command logs({MusterPath(), "logs", "-f", "--rdzv-endpoint=" + port.endpoint(), "job"});
  ASSERT_TRUE(logs.WaitForOut("[0]: 0: 1\n")) << logs.err();
  ASSERT_TRUE(logs.WaitForOut("[1]: 1: 1\n")) << logs.err();

  daemon->Signal(SIGKILL);
  daemon->Wait();
  ASSERT_TRUE(logs.WaitForErr("; this goes on from here once it, or another")) << logs.err();
  Write("go1", "");
  ASSERT_TRUE(exist("said"));
  daemon = std::make_unique<Command>(daemon_argv);
  for (const char* const line : {"[0]: 0: 3\n", "[1]: 1: 3\n"}) {
    ASSERT_TRUE(logs.WaitForOut(line)) << logs.out() << logs.err() << daemon->err();
  }
  // And once more, while nothing is printed.
  daemon->Signal(SIGKILL);
  daemon->Wait();
  daemon = std::make_unique<Command>(daemon_argv);
  Write("go2", "");
  ASSERT_TRUE(logs.WaitForOut("[0]: 0: 4\n")) << logs.err();
  ASSERT_TRUE(logs.WaitForOut("[1]: 1: 4\n")) << logs.err();
  Write("go3", "");
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_EQ(other.Wait(), 0) << other.err();
  EXPECT_EQ(logs.Wait(), 0) << logs.err();
  for (const std::string rank : {"0", "1"}) {
    std::string of_rank;
    for (const std::string& line : Lines(logs.out())) {
      if (line.starts_with("[" + rank + "]: ")) of_rank += line.substr(5) + "\n";
    }
    const std::string attempt =
        rank + ": 1\n" + rank + ": begun\n" + rank + ": 3\n" + rank + ": 4\n";
    EXPECT_EQ(of_rank, attempt + attempt) << logs.err();
  }
}

// A daemon that remembers nothing.
TEST_F(LogsTest, WhoFollowsIsToldThatTheDaemonDoesNotKnowHisJobAnyMore) {
  Command node = StartAgent({"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + daemon_.endpoint,
                             "--redirects=3", "--log-dir=" + Path("a")},
                            "echo begun; " + WaitsFor("end"));
  ASSERT_TRUE(daemon_.process.WaitForErr("started 1 worker")) << node.err();
  Command logs = StartLogs({"-f"});
  ASSERT_TRUE(logs.WaitForOut("begun\n")) << logs.err();
  node.Signal(SIGSTOP);
  daemon_.process.Signal(SIGKILL);
  daemon_.process.Wait();
  ASSERT_TRUE(logs.WaitForErr("; this goes on from here once it, or another")) << logs.err();
  Command next({DaemonPath(), "--listen=" + daemon_.endpoint});
  EXPECT_EQ(logs.Wait(), 1) << logs.err();
  EXPECT_TRUE(Contains(logs.err(),
                       "; it has ended meanwhile, or the daemon that is there does "
                       "not know it"))
      << logs.err();
  node.Signal(SIGCONT);
  Write("end", "");
  node.Wait();
}

// "less was open on a log, and the daemon had all of it in memory."
TEST_F(LogsTest, ReaderWhoDoesNotReadHoldsUpNeitherWorkerNorDaemonAndMissesNothing) {
  Command node = StartAgent({"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + daemon_.endpoint,
                             "--redirects=3", "--log-dir=" + Path("a")},
                            "touch " + Path("running") + "; " + WaitsFor("go") +
                                "; yes 0123456789abcdef | head -c 100000000; touch " +
                                Path("written") + "; " + WaitsFor("end"));
  // Before, there is no such job, and the reader would be told so.
  ASSERT_TRUE(WaitUntil([this] { return std::filesystem::exists(Path("running")); }));
  std::string logs;
  for (const std::string& word : LogsArgv({"-f", "--rank=0"})) logs += word + " ";
  Command reader({"sh", "-c",
                  "while ! " + logs + "| { " + WaitsFor("read") +
                      "; head -c 100000000 | cksum; touch " + Path("got") +
                      "; cat; }; do sleep 0.1; done"});
  const long before = PeakOf(daemon_.process.pid());
  Write("go", "");
  EXPECT_TRUE(WaitUntil([this] { return std::filesystem::exists(Path("written")); }))
      << "the worker was held up";
  EXPECT_LT(PeakOf(daemon_.process.pid()) - before, 16 * 1024) << "KiB of the daemon";
  Write("read", "");
  EXPECT_TRUE(WaitUntil([this] { return std::filesystem::exists(Path("got")); }));
  EXPECT_LT(PeakOf(daemon_.process.pid()) - before, 16 * 1024) << "KiB of the daemon";
  Write("end", "");
  EXPECT_EQ(node.Wait(), 0) << node.err();
  EXPECT_EQ(reader.Wait(), 0) << reader.err();
  Command sum({"sh", "-c", "yes 0123456789abcdef | head -c 100000000 | cksum"});
  EXPECT_EQ(sum.Wait(), 0);
  EXPECT_EQ(reader.out(), sum.out());
}

TEST_F(LogsTest, NodeThatIsKilledWhileItDeliversIsNamedAndTheOthersGoOn) {
  const std::string script =
      "echo world $WORLD_SIZE; test $WORLD_SIZE = 2 && exec sleep 10000; " + WaitsFor("end");
  const Words flags = {"--nnodes=1:2", "--rdzv-id=job", "--tee=3",
                       "--rdzv-endpoint=" + daemon_.endpoint,
                       "--rdzv-conf=last_call_timeout=10000"};
  Command stays = StartAgent(flags, script);
  Command killed = StartAgent(flags, script);
  ASSERT_TRUE(stays.WaitForOut("world 2\n") && killed.WaitForOut("world 2\n")) << stays.err();
  Command logs = StartLogs({"-f"});
  ASSERT_TRUE(logs.WaitForOut("[0]: world 2\n")) << logs.err();
  ASSERT_TRUE(logs.WaitForOut("[1]: world 2\n")) << logs.err();
  killed.Signal(SIGKILL);
  ASSERT_TRUE(logs.WaitForErr("the connection to its agent broke while its log was read"))
      << logs.err();
  ASSERT_TRUE(logs.WaitForOut("[0]: world 1\n")) << logs.err();
  Write("end", "");
  EXPECT_EQ(stays.Wait(), 0) << stays.err();
  EXPECT_EQ(logs.Wait(), 1);
  EXPECT_TRUE(Contains(logs.err(), "something is missing, as was said above"));
}

// There may be 16 readers of a job: twice as many that were killed leave no place taken.
TEST_F(LogsTest, ReadersThatAreKilledLeaveNothingBehind) {
  Command node =
      StartAgent({"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + daemon_.endpoint, "--tee=3"},
                 "echo here; " + WaitsFor("end"));
  ASSERT_TRUE(node.WaitForOut("here")) << node.err();
  for (int i = 0; i < 32; ++i) {
    Command reader = StartLogs({"-f"});
    ASSERT_TRUE(reader.WaitForOut("[0]: here\n")) << i << ": " << reader.err();
    reader.Signal(SIGKILL);
    ASSERT_EQ(reader.Wait(), -SIGKILL);
  }
  Write("end", "");
  EXPECT_EQ(node.Wait(), 0) << node.err();
}

// Nobody has asked for log files, and the node hosts the rendezvous itself.
TEST_F(LogsTest, WithoutFilesTheEndOfStderrIsThereAndTheRestIsExplained) {
  const HeldPort port;
  Command node = StartAgent({"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + port.endpoint()},
                            "echo out; echo err >&2; " + WaitsFor("end"));
  ASSERT_TRUE(node.WaitForErr("err\n")) << node.err();
  Command logs({MusterPath(), "logs", "--rdzv-endpoint=" + port.endpoint(), "job"});
  EXPECT_EQ(logs.Wait(), 0) << logs.err();
  EXPECT_EQ(logs.out(), "[0]: err\n");
  EXPECT_TRUE(Contains(logs.err(), "muster logs: stdout of rank 0 on host "));
  EXPECT_TRUE(Contains(logs.err(),
                       " goes straight to where `muster run` prints and is not kept; "
                       "--tee=3 or --redirects=3 of `muster run` keep it in files\n"));
  Command follower({MusterPath(), "logs", "-f", "--rdzv-endpoint=" + port.endpoint(), "job"});
  ASSERT_TRUE(follower.WaitForOut("[0]: err\n")) << follower.err();
  Write("end", "");
  EXPECT_EQ(node.Wait(), 0) << node.err();
  EXPECT_EQ(follower.Wait(), 0) << follower.err();
}

class LogsOfTenantsTest : public E2eTest {};

TEST_F(LogsOfTenantsTest, LogsOfAnotherTenantsJobAreNotThere) {
  for (const char* tenant : {"alice", "bob"}) {
    Command token({MusterPath(), "token", "new", Path("tokens/") + tenant});
    ASSERT_EQ(token.Wait(), 0) << token.err();
  }
  const HeldPort port;
  Command daemon({DaemonPath(), "--listen=" + port.endpoint(), "--tokens=" + Path("tokens")});
  ASSERT_TRUE(daemon.WaitForErr("listening on")) << daemon.err();
  const auto at = [&](const std::string& tenant) {
    return Words{"--rdzv-endpoint=" + port.endpoint(), "--token-file=" + Path("tokens/" + tenant)};
  };
  Words flags = at("alice");
  flags.insert(flags.end(), {"--nnodes=1", "--rdzv-id=job", "--rdzv-conf=is_host=0", "--tee=3"});
  Command node =
      StartAgent(flags, "echo hers; while ! test -e " + Path("end") + "; do sleep 0.02; done");
  ASSERT_TRUE(node.WaitForOut("hers")) << node.err();
  const auto read = [&](const std::string& tenant) {
    Words argv = at(tenant);
    argv.insert(argv.begin(), {MusterPath(), "logs", "job"});
    return Command(argv);
  };
  Command hers = read("alice");
  EXPECT_EQ(hers.Wait(), 0) << hers.err();
  EXPECT_EQ(hers.out(), "[0]: hers\n");
  Command his = read("bob");
  EXPECT_EQ(his.Wait(), 1);
  EXPECT_EQ(his.out(), "");
  EXPECT_EQ(his.err(), "muster logs: " + port.endpoint() + ": no job 'job' here\n");
  Write("end", "");
  EXPECT_EQ(node.Wait(), 0) << node.err();
}

}  // namespace
}  // namespace muster::test
