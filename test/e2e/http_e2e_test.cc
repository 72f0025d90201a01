// What `musterd --http` shows of jobs to a scraper with the metrics token, while a job fails,
// restarts and ends.
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// GET the second argument with the token in the first, if that is not empty.
constexpr char kGet[] =
    "import sys, urllib.request, urllib.error\n"
    "request = urllib.request.Request(sys.argv[2])\n"
    "if sys.argv[1]: request.add_header('Authorization', 'Bearer ' + sys.argv[1])\n"
    "try: print(urllib.request.urlopen(request).read().decode(), end='')\n"
    "except urllib.error.HTTPError as error: print(error.code, error.read().decode(), end='')\n";

class HttpTest : public E2eTest {
 protected:
  void StartDaemon(std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {DaemonPath(), "--listen=" + port_.endpoint(), "--http=" + http_.endpoint()});
    daemon_.emplace(flags);
    ASSERT_TRUE(daemon_->WaitForErr("listening on")) << daemon_->err();
  }
  void StopDaemon() {
    daemon_->Signal(SIGTERM);
    EXPECT_EQ(daemon_->Wait(), 0) << daemon_->err();
  }
  std::string Get(const std::string& token, const std::string& path) const {
    Command get({"python3", "-c", kGet, token, "http://" + http_.endpoint() + path});
    get.Wait();
    return get.out() + get.err();
  }
  bool Shows(const std::string& token, const std::string& path, const std::string& what) const {
    return WaitUntil([&] { return Get(token, path).find(what) != std::string::npos; });
  }
  static std::string Out(std::vector<std::string> argv) {
    Command command(std::move(argv));
    command.Wait();
    std::string out = command.out();
    while (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
  }
  // Writes one, and returns the one that only reads metrics.
  static std::string NewToken(const std::string& file) {
    EXPECT_TRUE(Succeeds({MusterPath(), "token", "new", file}));
    return Out({MusterPath(), "token", "metrics", file});
  }

  HeldPort port_, http_;
  std::optional<Command> daemon_;
};

TEST_F(HttpTest, JobThatFailsRestartsAndEndsIsShownWithItsCause) {
  const std::string file = Path("token");
  const std::string token = NewToken(file);
  StartDaemon({"--token-file=" + file, "--state-dir=" + Path("state")});
  EXPECT_THAT(Get("", "/api/v1/jobs"), HasSubstr("401 "));
  EXPECT_EQ(Get(token, "/api/v1/jobs"), "[]\n");
  Command agent = StartAgent(
      {"--rdzv-endpoint=" + port_.endpoint(), "--token-file=" + file, "--nnodes=1",
       "--rdzv-id=job7", "--rdzv-conf=is_host=0", "--max-restarts=1", "--nproc-per-node=2"},
      "[ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ] && exit 3; " + Until("end"));
  ASSERT_TRUE(Shows(token, "/metrics", "muster_recovery_seconds_count 1\n")) << agent.err();
  const std::string metrics = Get(token, "/metrics");
  EXPECT_THAT(metrics, HasSubstr("muster_rounds_over_total{cause=\"worker_failed\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_job_ranks{run_id=\"job7\"} 2\n"));
  Write("metrics", metrics);
  if (Succeeds({"sh", "-c", "command -v promtool"})) {
    EXPECT_TRUE(Succeeds({"sh", "-c", "promtool check metrics <" + Path("metrics")}));
  }
  const std::string job = Get(token, "/api/v1/jobs/job7");
  EXPECT_THAT(job, HasSubstr("\"end\": \"worker_failed\""));
  EXPECT_THAT(job, HasSubstr("rank 1 on host"));
  EXPECT_THAT(job, HasSubstr("exited with code 3 (restart 1 of 1)"));
  EXPECT_THAT(Get(token, "/api/v1/jobs/job8"), HasSubstr("404 "));

  // After its death another daemon runs, and shows the job again.
  const std::vector<pid_t> children = ChildrenOf(daemon_->pid());
  ASSERT_EQ(children.size(), 1u);
  kill(children.front(), SIGKILL);
  ASSERT_TRUE(daemon_->WaitForErr("1 job with 1 node remembered in ")) << daemon_->err();
  EXPECT_TRUE(Shows(token, "/api/v1/jobs", "\"run_id\": \"job7\""));
  Write("end", "");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_TRUE(Shows(token, "/api/v1/jobs", "[]"));
  EXPECT_THAT(Get(token, "/metrics"),
              HasSubstr("muster_jobs_ended_total{outcome=\"succeeded\"} 1\n"));
  StopDaemon();
}

TEST_F(HttpTest, TenantIsShownHisOwnJobs) {
  for (const char* tenant : {"alice", "bob"}) {
    ASSERT_TRUE(Succeeds({MusterPath(), "token", "new", Path("tokens/") + tenant}));
  }
  StartDaemon({"--tokens=" + Path("tokens")});
  Command agent =
      StartAgent({"--rdzv-endpoint=" + port_.endpoint(), "--token-file=" + Path("tokens/alice"),
                  "--nnodes=1", "--rdzv-id=hers", "--rdzv-conf=is_host=0"},
                 "echo started; sleep 10000");
  ASSERT_TRUE(agent.WaitForOut("started")) << agent.err();
  const std::string alice = Out({MusterPath(), "token", "metrics", Path("tokens/alice")});
  const std::string bob = Out({MusterPath(), "token", "metrics", Path("tokens/bob")});
  EXPECT_THAT(Get(alice, "/metrics"), HasSubstr("muster_job_ranks{run_id=\"hers\"} 1\n"));
  EXPECT_EQ(Get(bob, "/api/v1/jobs"), "[]\n");
  EXPECT_THAT(Get(bob, "/metrics"), Not(HasSubstr("run_id=")));
  EXPECT_THAT(Get(bob, "/api/v1/jobs/hers"), HasSubstr("404 "));
  agent.Signal(SIGTERM);
  agent.Wait();
  StopDaemon();
}

// "I have no musterd, and want to look at the job that I have just typed."
TEST_F(HttpTest, NodeThatHostsTheRendezvousShowsTheJob) {
  const std::string file = Path("token");
  const std::string token = NewToken(file);
  const auto node = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"--log-level=info", "--token-file=" + file, "--http=" + http_.endpoint()});
    return StartAgent(flags, Until("end"));
  };
  Command first = node({"--nnodes=2", "--rdzv-endpoint=" + port_.endpoint(), "--rdzv-id=mine"});
  ASSERT_TRUE(first.WaitForErr("showing the job at http://" + http_.endpoint())) << first.err();
  Command second = node({"--nnodes=2", "--rdzv-endpoint=" + port_.endpoint(), "--rdzv-id=mine"});
  EXPECT_TRUE(second.WaitForErr("this node does not host the rendezvous")) << second.err();
  EXPECT_TRUE(Shows(token, "/metrics", "muster_job_ranks{run_id=\"mine\"} 2\n"));
  EXPECT_THAT(Get("", "/api/v1/jobs"), HasSubstr("401 "));
  EXPECT_THAT(Get("", "/"), HasSubstr("<title>Muster</title>"));
  Write("end", "");
  EXPECT_EQ(first.Wait(), 0) << first.err();
  EXPECT_EQ(second.Wait(), 0) << second.err();
}

TEST_F(HttpTest, StandaloneRunIsShownToItsOwnUser) {
  const std::string file = Path("token");
  const std::string token = NewToken(file);
  Command run = StartAgent(
      {"--standalone", "--nproc-per-node=2", "--token-file=" + file, "--http=" + http_.endpoint()},
      Until("end"));
  EXPECT_TRUE(Shows(token, "/api/v1/jobs", "\"state\": \"running\""));
  EXPECT_THAT(Get("", "/api/v1/jobs"), HasSubstr("401 "));
  Write("end", "");
  EXPECT_EQ(run.Wait(), 0) << run.err();
}

// "Half of my logs are missing, and nothing that we monitor has said so."
TEST_F(HttpTest, OutputThatALogDidNotTakeIsCounted) {
  std::filesystem::create_directory(Path("logs"));
  const std::string mount = "mount -t tmpfs -o size=64k none " + Path("logs");
  if (!Succeeds({"unshare", "-m", "sh", "-c", mount})) {
    GTEST_SKIP() << "SKIPPED, a full disk was not tried: this process may not mount one";
  }
  StartDaemon({"--insecure"});
  const std::string run = MusterPath() + " run --insecure --nnodes=1 --rdzv-id=loud" +
                          " --rdzv-conf=is_host=0 --rdzv-endpoint=" + port_.endpoint() +
                          " --log-dir=" + Path("logs") + " --redirects=3 --no-python sh -c";
  const std::string loud = "\"head -c 200000 /dev/zero | tr '\\\\0' x; exec sleep 10000\"";
  Command agent({"unshare", "-m", "sh", "-c", mount + " && exec " + run + " " + loud});
  const auto lost = [&](const std::string& metric) {
    const std::string text = Get("", "/metrics");
    const std::size_t at = text.find("\n" + metric + " ");
    return at == std::string::npos ? 0 : std::stoll(text.substr(at + metric.size() + 2));
  };
  EXPECT_TRUE(WaitUntil([&] { return lost("muster_log_lost_bytes_total") > 100'000; }))
      << agent.err();
  EXPECT_TRUE(WaitUntil([&] {
    return lost("muster_job_log_lost_bytes{run_id=\"loud\"}") ==
           lost("muster_log_lost_bytes_total");
  }));
  agent.Signal(SIGTERM);
  agent.Wait();
  StopDaemon();
}

TEST_F(HttpTest, TokenIsNotSentOverANetwork) {
  Command run = StartAgent({"--standalone", "--http=0.0.0.0:9400"}, "true");
  EXPECT_EQ(run.Wait(), 2);
  EXPECT_THAT(run.err(), HasSubstr("--http=0.0.0.0:9400 would send tokens over the network"));
}

}  // namespace
}  // namespace muster::test
