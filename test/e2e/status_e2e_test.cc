// `muster status` against a real daemon, while a job waits, while it runs, and after its end.
#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/e2e_fixture.h"
#include "test/support/run_until.h"

namespace muster::test {
namespace {

class StatusTest : public E2eTest {
 protected:
  struct Result {
    std::optional<int> code;
    std::string out;
    std::string err;
  };

  static Result Run(std::vector<std::string> argv) {
    argv.insert(argv.begin(), MusterPath());
    Command command(std::move(argv));
    const std::optional<int> code = command.Wait();
    return {code, command.out(), command.err()};
  }
  static Result Status(const std::string& endpoint, const std::vector<std::string>& more = {}) {
    std::vector<std::string> argv = {"status", "--rdzv-endpoint", endpoint};
    argv.insert(argv.end(), more.begin(), more.end());
    return Run(std::move(argv));
  }
};

TEST_F(StatusTest, JobIsSeenWaitingRunningAndOver) {
  const Daemon daemon = StartDaemon();
  const Result nothing = Status(daemon.endpoint);
  EXPECT_EQ(nothing.code, 0);
  EXPECT_EQ(nothing.out, "");
  EXPECT_EQ(nothing.err, "no jobs at " + daemon.endpoint + "\n");
  EXPECT_EQ(Status(daemon.endpoint, {"--json"}).out, "[]\n");

  const std::vector<std::string> flags = {"--nnodes=2", "--nproc-per-node=2", "--rdzv-id=job7",
                                          "--max-restarts=3", "--rdzv-endpoint=" + daemon.endpoint};
  const std::string script = "echo up; exec " + MusterPath() + " kv wait end";
  Command one = StartAgent(flags, script);
  ASSERT_TRUE(one.WaitForErr("waiting for 1 more")) << one.err();
  const Result waiting = Status(daemon.endpoint);
  EXPECT_EQ(waiting.code, 0) << waiting.err;
  ASSERT_EQ(Lines(waiting.out).size(), 2u) << waiting.out;
  EXPECT_TRUE(Contains(
      waiting.out,
      "job7  gathering  0      1 of 2  -      0 of 3    round 0: 1 of 2 nodes are here ("));
  EXPECT_TRUE(Contains(waiting.out, "waiting for 1 more, giving up in "));

  Command other = StartAgent(flags, script);
  ASSERT_TRUE(one.WaitForOut("up\nup\n")) << one.err();
  ASSERT_TRUE(other.WaitForOut("up\nup\n")) << other.err();
  const Result running = Status(daemon.endpoint, {"--rdzv-id=job7"});
  EXPECT_EQ(running.code, 0) << running.err;
  EXPECT_TRUE(Contains(running.out,
                       "job7  running  0      2 of 2  4      0 of 3    round 0 has 2 nodes: 0="));
  EXPECT_TRUE(Contains(running.out, "  0     0-1    "));
  EXPECT_TRUE(Contains(running.out, "  1     2-3    "));

  const auto jobs = nlohmann::json::parse(Status(daemon.endpoint, {"--json"}).out, nullptr, false);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0]["run_id"], "job7");
  EXPECT_EQ(jobs[0]["state"], "running");
  ASSERT_EQ(jobs[0]["nodes"].size(), 2u);
  EXPECT_EQ(jobs[0]["nodes"][1]["first_rank"], 2);
  EXPECT_EQ(jobs[0]["nodes"][1]["nproc"], 2);

  EXPECT_EQ(
      Run({"kv", "--rdzv-endpoint", daemon.endpoint, "--rdzv-id", "job7", "set", "end", ""}).code,
      0);
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_EQ(other.Wait(), 0) << other.err();
  const Result over = Status(daemon.endpoint, {"--rdzv-id=job7"});
  EXPECT_EQ(over.code, 0) << over.err;
  EXPECT_TRUE(Contains(over.out, "job7  succeeded  0      0 of 2  -      0 of 3    ")) << over.out;
  EXPECT_TRUE(Contains(over.out, " ago: job 'job7' succeeded: 4 workers on 2 nodes")) << over.out;
  const Result none = Status(daemon.endpoint, {"--rdzv-id=job8"});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(none.err, "muster status: " + daemon.endpoint + ": no job 'job8' here\n");
}

// "The job stood still for a night, and nobody but its terminal knew that a rank had been stopped."
TEST_F(StatusTest, RankThatIsStoppedIsShownUntilItIsContinued) {
  const Daemon daemon = StartDaemon();
  Command agent = StartAgent(
      {"--nnodes=1", "--nproc-per-node=2", "--rdzv-id=job", "--rdzv-endpoint=" + daemon.endpoint},
      "[ $RANK = 0 ] || { echo $$ >" + Path("pid") + "; kill -STOP $$; echo goes on; }; exec " +
          MusterPath() + " kv wait end");
  ASSERT_TRUE(agent.WaitForErr("rank 1 (pid ")) << agent.err();
  Result shown;
  const auto troubles = [&] {
    shown = Status(daemon.endpoint, {"--rdzv-id=job", "--json"});
    const auto jobs = nlohmann::json::parse(shown.out, nullptr, false);
    return jobs.is_array() && !jobs.empty() && !jobs[0]["nodes"].empty()
               ? jobs[0]["nodes"][0]["troubles"]
               : nlohmann::json::array();
  };
  ASSERT_TRUE(WaitUntil([&] { return troubles().size() == 1; })) << shown.out;
  const auto trouble = troubles().at(0);
  EXPECT_EQ(trouble["rank"], 1);
  EXPECT_EQ(trouble["kind"], "stopped");
  EXPECT_EQ(trouble["what"], "was stopped by SIGSTOP");
  EXPECT_TRUE(
      Contains(Status(daemon.endpoint, {"--rdzv-id=job"}).out, " ago  was stopped by SIGSTOP\n"));

  std::ifstream file(Path("pid"));
  pid_t pid = 0;
  ASSERT_TRUE(file >> pid);
  ASSERT_EQ(kill(pid, SIGCONT), 0);
  ASSERT_TRUE(agent.WaitForOut("goes on")) << agent.err();
  EXPECT_TRUE(WaitUntil([&] { return troubles().empty(); })) << shown.out;
  EXPECT_EQ(
      Run({"kv", "--rdzv-endpoint", daemon.endpoint, "--rdzv-id", "job", "set", "end", ""}).code,
      0);
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
}

// Who came to look after a job had failed was told that there is no such job.
TEST_F(StatusTest, JobThatHasFailedSaysWhichRankAndWhy) {
  const Daemon daemon = StartDaemon();
  const std::vector<std::string> flags = {"--nnodes=1", "--nproc-per-node=2", "--rdzv-id=broken",
                                          "--max-restarts=1", "--rdzv-endpoint=" + daemon.endpoint};
  Command agent =
      StartAgent(flags, "[ $RANK = 0 ] && exec sleep 60; echo no such layer >&2; exit 3");
  EXPECT_NE(agent.Wait(), 0);
  const Result failed = Status(daemon.endpoint, {"--rdzv-id=broken"});
  EXPECT_EQ(failed.code, 0) << failed.err;
  EXPECT_TRUE(Contains(failed.out, "broken  failed  1 ")) << failed.out;
  // Both rounds, the first with the cause of its end.
  EXPECT_TRUE(Contains(failed.out, "exited with code 3 (restart 1 of 1)")) << failed.out;
  EXPECT_TRUE(Contains(failed.out, "  the job failed\n")) << failed.out;
  EXPECT_TRUE(Contains(failed.out, "First failure:\n")) << failed.out;
  EXPECT_TRUE(Contains(failed.out, "rank      : 1 (local_rank: 1)")) << failed.out;
  EXPECT_TRUE(Contains(failed.out, "exited with code 3")) << failed.out;
  EXPECT_TRUE(Contains(failed.out, "no such layer")) << failed.out;
}

TEST_F(StatusTest, WorkerOfAHostedJobAsksWithoutFlags) {
  const HeldPort port;
  Command agent = StartAgent({"--nnodes=1", "--rdzv-endpoint=" + port.endpoint(), "--rdzv-id=own"},
                             "exec " + MusterPath() + " status");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_TRUE(Contains(agent.out(),
                       "\nown  running  0      1 of 1  1      0 of 0    round 0 has 1 node: 0="));
}

// A run in a worker of another job does not take that job's rendezvous for its own.
TEST_F(StatusTest, WorkerOfAStandaloneRunHearsThatThereIsNothingToAsk) {
  Command agent = StartMuster(
      {"--standalone", "--no-python", "sh", "-c", MusterPath() + " status; test $? = 2"},
      {"MUSTER_RDZV_ENDPOINT=127.0.0.1:1"});
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_TRUE(
      Contains(agent.err(), "muster status: no rendezvous is named; give --rdzv-endpoint="));
}

TEST_F(StatusTest, WhoIsNoRendezvousIsNamed) {
  HeldPort port;
  const Result nobody = Status(port.endpoint());
  EXPECT_EQ(nobody.code, 3);
  EXPECT_EQ(nobody.err, "muster status: " + port.endpoint() +
                            ": nothing is listening there (Connection refused)\n");

  port.Listen();
  const Result silent = Status(port.endpoint());
  EXPECT_EQ(silent.code, 3);
  EXPECT_TRUE(Contains(silent.err, "muster status: " + port.endpoint() + ": "));

  Command store({MusterPath(), "store", "--port=0", "--ready-fd=1"});
  ASSERT_TRUE(store.WaitForOut("\n"));
  const Result foreign = Status("127.0.0.1:" + Lines(store.out()).at(0));
  EXPECT_EQ(foreign.code, 3);
  EXPECT_TRUE(Contains(foreign.err, "muster status: 127.0.0.1:"));
  EXPECT_EQ(Lines(foreign.err).size(), 1u) << foreign.err;
}

}  // namespace
}  // namespace muster::test
