// `muster logs` while its daemon dies, or while nothing reads what it prints.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

using Words = std::vector<std::string>;

class LogsTest : public E2eTest {
 protected:
  Words LogsArgv(Words more = {}) const {
    return Joined({MusterPath(), "logs", "--rdzv-endpoint=" + daemon_.endpoint, "job"}, more);
  }
  Command StartLogs(Words more = {}) const { return Command(LogsArgv(std::move(more))); }

  // Its peak memory in KiB.
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

// "muster logs -f ended with the daemon", and whoever followed had to find the place again.
TEST_F(LogsTest, FollowerGoesOnWhenTheDaemonIsBack) {
  const HeldPort port;
  const Words daemon_argv = {DaemonPath(), "--listen=" + port.endpoint(),
                             "--state-dir=" + Path("state")};
  auto daemon = std::make_unique<Command>(daemon_argv);
  ASSERT_TRUE(daemon->WaitForErr("listening on")) << daemon->err();
  const std::string lines = "line() { echo $RANK: $1; }; ";
  // Line 3 is printed while there is no daemon, whose death also cuts a line in two.
  const std::string script = lines + "line 1; printf \"$RANK: beg\"; touch " + Path("up") +
                             "$RANK; " + Until("go1") + "; echo un; line 3; touch " + Path("said") +
                             "$RANK; " + Until("go2") + "; line 4; " + Until("go3") +
                             "; test $TORCHELASTIC_RESTART_COUNT = 1";
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
TEST_F(LogsTest, FollowerIsToldThatTheDaemonNoLongerKnowsTheJob) {
  Command node = StartAgent({"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + daemon_.endpoint,
                             "--redirects=3", "--log-dir=" + Path("a")},
                            "echo begun; " + Until("end"));
  ASSERT_TRUE(daemon_.process.WaitForErr("started 1 worker")) << node.err();
  Command logs = StartLogs({"-f"});
  ASSERT_TRUE(logs.WaitForOut("begun\n")) << logs.err();
  node.Signal(SIGSTOP);
  daemon_.process.Signal(SIGKILL);
  daemon_.process.Wait();
  ASSERT_TRUE(logs.WaitForErr("; this goes on from here once it, or another")) << logs.err();
  Command next({DaemonPath(), "--listen=" + daemon_.endpoint});
  EXPECT_EQ(logs.Wait(), 1) << logs.err();
  EXPECT_TRUE(
      Contains(logs.err(), "; it has ended meanwhile, or the daemon there does not know it"))
      << logs.err();
  node.Signal(SIGCONT);
  Write("end", "");
  node.Wait();
}

// "less was open on a log, and the daemon had all of it in memory."
TEST_F(LogsTest, ReaderWhoDoesNotReadHoldsUpNeitherWorkerNorDaemonAndMissesNothing) {
  Command node = StartAgent({"--nnodes=1", "--rdzv-id=job", "--rdzv-endpoint=" + daemon_.endpoint,
                             "--redirects=3", "--log-dir=" + Path("a")},
                            "touch " + Path("running") + "; " + Until("go") +
                                "; yes 0123456789abcdef | head -c 100000000; touch " +
                                Path("written") + "; " + Until("end"));
  // Before that, the reader would learn that there is no such job.
  ASSERT_TRUE(WaitUntil([this] { return std::filesystem::exists(Path("running")); }));
  std::string logs;
  for (const std::string& word : LogsArgv({"-f", "--rank=0"})) logs += word + " ";
  Command reader({"sh", "-c",
                  "while ! " + logs + "| { " + Until("read") +
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

}  // namespace
}  // namespace muster::test
