// --worker-store=tunnel: workers of all nodes meet at a store that is not open to the network.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"

namespace muster::test {
namespace {

// Processes that import torch, on a machine that may have one slow core.
constexpr std::chrono::seconds kTorchDeadline(240);

constexpr char kCapture[] =
    "#!/bin/sh\n"
    "exec /usr/bin/python3 test/e2e/store_worker.py capture meet seen value 5000 meet two seen\n";

class TunnelTest : public E2eTest {
 protected:
  void SetUp() override {
    if (!Succeeds({"/usr/bin/python3", "-c", ""})) GTEST_SKIP() << "there is no /usr/bin/python3";
  }

  static std::vector<std::string> With(std::vector<std::string> flags,
                                       const std::vector<std::string>& more) {
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  Command StartNode(const std::vector<std::string>& flags, const std::string& commands) {
    return StartAgent(With({"--worker-store=tunnel"}, flags),
                      "exec /usr/bin/python3 test/e2e/store_worker.py " + commands);
  }
};

class TunnelOfTwoHostsTest : public TunnelTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    TunnelTest::SetUp();
    if (!Succeeds({"unshare", "--map-root-user", "--net", "unshare", "--net", "ip", "link"})) {
      GTEST_SKIP() << "this machine does not let us make network namespaces (unshare --net)";
    }
  }

  Command StartHosts(const std::string& program, const std::string& store = "tunnel") {
    return Command({"unshare", "--map-root-user", "--net", "sh", "test/e2e/two_hosts.sh",
                    MusterPath(), program, GetParam(), "--worker-store=" + store},
                   Environment());
  }
};

// A node shows others its rendezvous, if it hosts that, and the tunnel to the store, if it has
// that: neither answers without the token.
TEST_P(TunnelOfTwoHostsTest, StoreIsOnLoopbackOnEachAndNothingOnTheNetworkSpeaksToStrangers) {
  Command hosts = StartHosts(Write("worker",
                                   "#!/bin/sh\n"
                                   "exec /usr/bin/python3 test/e2e/store_worker.py "
                                   "meet one value 300000 ports meet two\n",
                                   0755));
  EXPECT_EQ(hosts.Wait(), 0) << hosts.err();
  EXPECT_EQ(hosts.out(),
            "rank 0 of 2, store at 127.0.0.1, value of 300000 bytes, 2 open, 0 of them to "
            "strangers\n"
            "rank 1 of 2, store at 127.0.0.1, value of 300000 bytes, 0 open, 0 of them to "
            "strangers\n")
      << hosts.err();
}

TEST_P(TunnelOfTwoHostsTest, WhoListensOnTheNetworkLearnsNoKeyAndNoValue) {
  Command hosts = StartHosts(Write("worker", kCapture, 0755));
  EXPECT_EQ(hosts.Wait(), 0) << hosts.err();
  EXPECT_EQ(hosts.out(),
            "rank 0 of 2, store at 127.0.0.1, value of 5000 bytes, the network has seen nothing of "
            "it\n"
            "rank 1 of 2, store at 127.0.0.1, value of 5000 bytes, the network has seen nothing of "
            "it\n")
      << hosts.err();
}

// Shows that the test above can fail.
TEST_P(TunnelOfTwoHostsTest, WithoutATunnelItIsAllThereToSee) {
  Command hosts = StartHosts(Write("worker", kCapture, 0755), "agent");
  EXPECT_EQ(hosts.Wait(), 0) << hosts.err();
  EXPECT_EQ(hosts.out(),
            "rank 0 of 2, store at 10.99.0.1, value of 5000 bytes, the network has seen something "
            "of it\n"
            "rank 1 of 2, store at 10.99.0.1, value of 5000 bytes, the network has seen something "
            "of it\n")
      << hosts.err();
}

TEST_P(TunnelOfTwoHostsTest, WorkersOfPyTorchReduceOverTheNetworkAndMeetThroughTheTunnel) {
  Command import({"/usr/bin/python3", "-c", "import torch.distributed"});
  if (import.Wait(kTorchDeadline) != 0) {
    GTEST_SKIP() << "/usr/bin/python3 has no torch (Debian: python3-torch)";
  }
  Command hosts = StartHosts(
      Write("worker", "#!/bin/sh\nexec /usr/bin/python3 test/e2e/torch/all_reduce.py\n", 0755));
  EXPECT_EQ(hosts.Wait(kTorchDeadline), 0) << hosts.err();
  EXPECT_EQ(hosts.out(), "rank 0 of 2: sum 3\nrank 1 of 2: sum 3\n") << hosts.err();
}

INSTANTIATE_TEST_SUITE_P(Meeting, TunnelOfTwoHostsTest, testing::Values("endpoint", "static"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(TunnelTest, RestartedWorkersHaveATunnelOfTheirOwn) {
  const Daemon daemon = StartDaemon();
  const std::vector<std::string> flags = {"--nnodes=2", "--nproc-per-node=2", "--max-restarts=1",
                                          "--rdzv-id=job", "--rdzv-endpoint=" + daemon.endpoint};
  Command one = StartNode(flags, "meet one fail 3 meet two");
  Command other = StartNode(flags, "meet one fail 3 meet two");
  EXPECT_EQ(one.Wait(), 0) << one.err();
  EXPECT_EQ(other.Wait(), 0) << other.err();
  const std::string out = one.out() + other.out();
  for (const char* rank : {"0", "1", "2", "3"}) {
    EXPECT_TRUE(
        Contains(out, std::string("rank ") + rank + " of 4, store at 127.0.0.1, attempt 1\n"));
  }
  EXPECT_FALSE(Contains(one.err() + other.err(), "refused")) << one.err() << other.err();
}

TEST_F(TunnelTest, NodeThatHasTheStoreIsKilledAndTheOtherServesItsOwn) {
  const Daemon daemon = StartDaemon();
  const std::vector<std::string> flags = {"--nnodes=1:2", "--rdzv-id=job", "--max-restarts=3",
                                          "--rdzv-endpoint=" + daemon.endpoint};
  const std::string commands = "meet one wait " + Path("end");
  Command first = StartNode(With(flags, {"--node-rank=0"}), commands);
  Command second = StartNode(With(flags, {"--node-rank=1"}), commands);
  ASSERT_TRUE(first.WaitForOut("rank 0 of 2, store at 127.0.0.1, waits\n")) << first.err();
  ASSERT_TRUE(second.WaitForOut("rank 1 of 2, store at 127.0.0.1, waits\n")) << second.err();
  first.Signal(SIGKILL);
  EXPECT_TRUE(second.WaitForOut("rank 0 of 1, store at 127.0.0.1, waits\n")) << second.err();
  // A newcomer finds the tunnel at the store's new place.
  Command third = StartNode(flags, commands);
  EXPECT_TRUE(third.WaitForOut("rank 1 of 2, store at 127.0.0.1, waits\n")) << third.err();
  Write("end", "");
  EXPECT_EQ(second.Wait(), 0) << second.err();
  EXPECT_EQ(third.Wait(), 0) << third.err();
}

TEST_F(TunnelTest, NodesThatDoNotAgreeDoNotMeet) {
  const Daemon daemon = StartDaemon();
  const std::vector<std::string> flags = {"--nnodes=2", "--rdzv-id=job",
                                          "--rdzv-endpoint=" + daemon.endpoint};
  Command first = StartNode(With(flags, {"--log-level=info"}), "meet one");
  ASSERT_TRUE(first.WaitForErr("1 of 2 nodes")) << first.err();
  Command without = StartAgent(flags, "true");
  EXPECT_NE(without.Wait(), 0);
  EXPECT_TRUE(Contains(without.err(),
                       " asks for a workers' store without a tunnel, unlike job "
                       "'job'; give the same --worker-store on every node"));
  Command second = StartNode(flags, "meet one");
  EXPECT_EQ(first.Wait(), 0) << first.err();
  EXPECT_EQ(second.Wait(), 0) << second.err();
}

// While a token is changed, one node may have the new file before the node with the store does.
TEST_F(TunnelTest, NodeWithANewerTokenSaysWhyItWaits) {
  const std::string newer = Path("newer"), older = Path("older");
  ASSERT_TRUE(Succeeds({MusterPath(), "token", "new", newer}));
  std::filesystem::copy(newer, older);
  ASSERT_TRUE(Succeeds({MusterPath(), "token", "rotate", newer}));
  // It accepts both tokens in the new file.
  Command daemon({DaemonPath(), "--listen=127.0.0.1:0", "--ready-fd=1", "--token-file=" + newer},
                 Environment());
  ASSERT_TRUE(daemon.WaitForOut("\n")) << daemon.err();
  const std::vector<std::string> flags = {"--nnodes=2", "--rdzv-id=job",
                                          "--rdzv-endpoint=127.0.0.1:" + Lines(daemon.out()).at(0)};
  Command first = StartNode(With(flags, {"--node-rank=0", "--token-file=" + older}), "meet one");
  Command second = StartNode(With(flags, {"--node-rank=1", "--token-file=" + newer}), "meet one");
  ASSERT_TRUE(second.WaitForErr("workers wait for the workers' store at 127.0.0.1:"))
      << second.err();
  EXPECT_TRUE(Contains(second.err(), "it was started with another token than the one here"));
  std::filesystem::copy(newer, older, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(first.Wait(), 0) << first.err();
  EXPECT_EQ(second.Wait(), 0) << second.err();
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(), 0) << daemon.err();
}

TEST_F(TunnelTest, ThereIsNoneWithoutCredentials) {
  Command agent = StartAgent(
      {"--worker-store=tunnel", "--nnodes=2", "--insecure", "--rdzv-endpoint=127.0.0.1:29400"},
      "true");
  EXPECT_EQ(agent.Wait(), 2);
  EXPECT_TRUE(Contains(agent.err(),
                       "--worker-store=tunnel carries the workers' store over TLS, which "
                       "--insecure (or MUSTER_INSECURE=1) goes without; drop one of them"));
}

TEST_F(TunnelTest, OneNodeWithoutAnEndpointHasNothingToCarry) {
  Command agent = StartNode({"--standalone", "--nproc-per-node=2"}, "meet one ports");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_TRUE(Contains(agent.out(), "rank 0 of 2, store at 127.0.0.1"));
}

}  // namespace
}  // namespace muster::test
