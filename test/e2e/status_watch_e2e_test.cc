// `muster status --watch`, beside a job that waits, runs, fails, restarts and ends, and a daemon
// that dies and comes back.
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class StatusWatchTest : public E2eTest {
 protected:
  Command Watch(const std::string& endpoint, const std::vector<std::string>& more) {
    std::vector<std::string> argv =
        Joined({MusterPath(), "status", "--watch", "--rdzv-endpoint=" + endpoint}, more);
    return Command(std::move(argv), Environment());
  }
  // A job of one node; its script may wait for the file "end".
  Command StartJob(const std::string& endpoint, const std::vector<std::string>& more,
                   const std::string& script) {
    std::vector<std::string> flags = Joined(
        {"--nnodes=1", "--rdzv-id=job7", "--rdzv-conf=is_host=0", "--rdzv-endpoint=" + endpoint},
        more);
    return StartAgent(flags, script);
  }
};

TEST_F(StatusWatchTest, JobIsFollowedThroughARestartToItsEnd) {
  const Daemon daemon = StartDaemon();
  Command all = Watch(daemon.endpoint, {});
  ASSERT_TRUE(all.WaitForOut("no jobs\n")) << all.err();
  Command agent = StartJob(daemon.endpoint, {"--max-restarts=1"},
                           "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then " + Until("fail") +
                               "; exit 3; fi; " + Until("end"));
  ASSERT_TRUE(all.WaitForOut("job7  running")) << all.err();
  Command one = Watch(daemon.endpoint, {"job7"});
  ASSERT_TRUE(one.WaitForOut("ROUND  BEGAN")) << one.err();
  Write("fail", "");
  ASSERT_TRUE(one.WaitForOut("exited with code 3 (restart 1 of 1)")) << one.out() << one.err();
  Write("end", "");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_THAT(one.out(), HasSubstr("ENDED  HOW        MESSAGE\njob7   succeeded  "));
  ASSERT_TRUE(all.WaitForOut("job7   succeeded")) << all.out();
  // A shell's exit code 130.
  all.Signal(SIGINT);
  EXPECT_EQ(all.Wait(), -SIGINT);
}

// "With --watch I saw neither how far the ranks were nor, in the end, which one had failed and
// why."
TEST_F(StatusWatchTest, OneJobIsShownAsWithoutWatch) {
  const Daemon daemon = StartDaemon();
  Command agent = StartJob(daemon.endpoint, {},
                           "python3 -c 'import os, socket\n"
                           "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                           "s.sendto(b\"beat 0 1213 loss=0.25\", "
                           "os.environ[\"MUSTER_BEAT_SOCKET\"])'; " +
                               Until("fail") + "; echo KeyError: fc7 >&2; exit 3");
  ASSERT_TRUE(WaitUntil([&] {
    Command status({MusterPath(), "status", "--rdzv-endpoint=" + daemon.endpoint, "job7"},
                   Environment());
    status.Wait();
    return Contains(status.out(), "1213");
  })) << agent.err();
  Command watch = Watch(daemon.endpoint, {"job7"});
  ASSERT_TRUE(watch.WaitForOut("\nRANK  HOST")) << watch.out() << watch.err();
  ASSERT_TRUE(watch.WaitForOut("1213")) << watch.out();
  Write("fail", "");
  EXPECT_EQ(watch.Wait(), 1) << watch.err();
  EXPECT_EQ(agent.Wait(), 1);
  EXPECT_THAT(watch.out(), HasSubstr("\nFirst failure:\n"));
  EXPECT_THAT(watch.out(), HasSubstr("KeyError: fc7"));
}

TEST_F(StatusWatchTest, ProgramsReadALineForEachChangeAndTheExitCode) {
  const Daemon daemon = StartDaemon();
  Command agent = StartJob(daemon.endpoint, {}, Until("fail") + "; exit 3");
  Command all = Watch(daemon.endpoint, {"--json"});
  ASSERT_TRUE(all.WaitForOut("\"state\":\"running\"")) << all.out() << all.err();
  Command watch = Watch(daemon.endpoint, {"--rdzv-id=job7", "--json"});
  ASSERT_TRUE(watch.WaitForOut("\n")) << watch.err();
  Write("fail", "");
  EXPECT_EQ(watch.Wait(), 1) << watch.err();
  EXPECT_EQ(agent.Wait(), 1);
  const std::vector<std::string> lines = Lines(watch.out());
  ASSERT_GE(lines.size(), 2u);
  for (const std::string& line : lines) {
    const auto change = nlohmann::json::parse(line, nullptr, false);
    ASSERT_FALSE(change.is_discarded()) << line;
    EXPECT_TRUE(change["jobs"].is_array() && change["ended"].is_array()) << line;
  }
  const auto last = nlohmann::json::parse(lines.back());
  ASSERT_EQ(last["ended"].size(), 1u);
  EXPECT_EQ(last["ended"][0]["run_id"], "job7");
  EXPECT_EQ(last["ended"][0]["outcome"], "worker_failed");
  EXPECT_THAT(last["ended"][0]["message"].get<std::string>(), HasSubstr("exited with code 3"));
  // How it ended is remembered even when nothing of it is left.
  Command late = Watch(daemon.endpoint, {"job7"});
  EXPECT_EQ(late.Wait(), 1);
  EXPECT_THAT(late.out(), HasSubstr("job7   failed"));
}

TEST_F(StatusWatchTest, DaemonThatDiesAndComesBackIsWatchedAgain) {
  const HeldPort port;
  Command daemon({DaemonPath(), "--listen=" + port.endpoint(), "--state-dir=" + Path("state")});
  ASSERT_TRUE(daemon.WaitForErr("listening on")) << daemon.err();
  Command agent = StartJob(port.endpoint(), {}, Until("end"));
  Command list = Watch(port.endpoint(), {});
  ASSERT_TRUE(list.WaitForOut("job7  running")) << list.err();
  Command again = Watch(port.endpoint(), {"job7"});
  ASSERT_TRUE(again.WaitForOut("job7  running")) << again.err();
  const std::vector<pid_t> children = ChildrenOf(daemon.pid());
  ASSERT_EQ(children.size(), 1u);
  kill(children.front(), SIGKILL);
  ASSERT_TRUE(again.WaitForErr("; trying again\n")) << again.err();
  EXPECT_THAT(again.err(), HasSubstr("muster status: " + port.endpoint() + ": "));
  ASSERT_TRUE(daemon.WaitForErr("1 job with 1 node remembered in ")) << daemon.err();
  Write("end", "");
  EXPECT_EQ(again.Wait(), 0) << again.err();
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
}

TEST_F(StatusWatchTest, MistakesAreSaidAtOnce) {
  const HeldPort nobody;
  Command silent = Watch(nobody.endpoint(), {});
  EXPECT_EQ(silent.Wait(), 3);
  EXPECT_EQ(silent.err(), "muster status: " + nobody.endpoint() +
                              ": nothing is listening there (Connection refused)\n");
  const Daemon daemon = StartDaemon();
  Command unknown = Watch(daemon.endpoint, {"nosuch"});
  EXPECT_EQ(unknown.Wait(), 1);
  EXPECT_EQ(unknown.err(), "muster status: " + daemon.endpoint + ": no job 'nosuch' here\n");
}

TEST_F(StatusWatchTest, NobodyIsLeftToReadIt) {
  const Daemon daemon = StartDaemon();
  Command pipe({"sh", "-c",
                MusterPath() + " status --watch --rdzv-endpoint=" + daemon.endpoint + " | head -1"},
               Environment());
  ASSERT_TRUE(pipe.WaitForOut("no jobs\n")) << pipe.err();
  Command agent = StartJob(daemon.endpoint, {}, "true");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_EQ(pipe.Wait(), 0);
}

}  // namespace
}  // namespace muster::test
