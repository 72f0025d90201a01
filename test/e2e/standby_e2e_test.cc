// Standby daemons over one etcd: whichever dies, running jobs do not notice.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/process_scan.h"
#include "test/support/wait_until.h"

namespace muster::test {
namespace {

constexpr char kFollows[] = "standing by, with all state in memory: ";

class StandbyTest : public E2eTest {
 protected:
  void SetUp() override {
    const std::string clients = "http://" + etcd_port_.endpoint();
    const std::string peers = "http://" + peer_port_.endpoint();
    etcd_ = std::make_unique<Command>(std::vector<std::string>{
        "/usr/bin/etcd", "--data-dir=" + Path("etcd"), "--listen-client-urls=" + clients,
        "--advertise-client-urls=" + clients, "--listen-peer-urls=" + peers,
        "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers,
        "--quota-backend-bytes=" + std::to_string(QuotaBytes()),
        "--max-txn-ops=" + std::to_string(MostOperations())});
    ASSERT_TRUE(etcd_->WaitForErr("ready to serve client requests")) << etcd_->err();
  }

  // etcd's space; 0: its default.
  virtual int QuotaBytes() const { return 0; }

  // Per transaction.
  virtual int MostOperations() const { return 128; }

  std::string State() const { return "etcd://" + etcd_port_.endpoint() + "/jobs"; }

  struct Standby {
    HeldPort port;
    std::unique_ptr<Command> process;
  };

  void StartDaemon(Standby& standby, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> argv =
        Joined({DaemonPath(), "--listen=" + standby.port.endpoint(), "--state=" + State()}, more);
    standby.process = std::make_unique<Command>(argv);
  }

  // The one leads before the other is there.
  void StartBoth(Standby& leader, Standby& standby) const {
    StartDaemon(leader);
    ASSERT_TRUE(leader.process->WaitForErr("leading, after")) << leader.process->err();
    StartDaemon(standby);
    ASSERT_TRUE(standby.process->WaitForErr("standing by; ")) << standby.process->err();
  }

  // With its keeper.
  static void Kill(Standby& standby) {
    standby.process->Signal(SIGKILL);
    EXPECT_EQ(standby.process->Wait(), -SIGKILL);
  }

  void Ctl(const std::vector<std::string>& words) const {
    std::vector<std::string> argv =
        Joined({"/usr/bin/env", "ETCDCTL_API=3", "etcdctl", "--endpoints=" + etcd_port_.endpoint()},
               words);
    Command etcdctl(argv);
    ASSERT_EQ(etcdctl.Wait(), 0) << etcdctl.err();
  }

  std::vector<std::string> Flags(const std::vector<std::string>& more = {}) const {
    return Joined({"--nnodes=2", "--rdzv-id=job",
                   "--rdzv-endpoint=" + one_.port.endpoint() + "," + other_.port.endpoint()},
                  more);
  }

  std::string WaitsFor(const std::string& file) const {
    return "echo rank $RANK restart $TORCHELASTIC_RESTART_COUNT; " + Until(file);
  }

  // Of those that wait for "end".
  void EndJob(Command& agent, Command& peer) const {
    Write("end", "");
    EXPECT_EQ(agent.Wait(), 0) << agent.err();
    EXPECT_EQ(peer.Wait(), 0) << peer.err();
  }

  // The daemon, not its keeper.
  static pid_t DaemonOf(const Standby& standby) {
    const std::vector<pid_t> children = ChildrenOf(standby.process->pid());
    return children.size() == 1 ? children.front() : -1;
  }

  HeldPort etcd_port_;
  HeldPort peer_port_;
  std::unique_ptr<Command> etcd_;
  Standby one_;
  Standby other_;
};

// "The node with the rendezvous died, and all jobs with it."
TEST_F(StandbyTest, WorkersRunThroughWhenTheLeaderAndItsKeeperAreKilled) {
  StartDaemon(one_);
  ASSERT_TRUE(one_.process->WaitForErr("leading, after")) << one_.process->err();
  EXPECT_TRUE(one_.process->WaitForErr(", read just now\n")) << one_.process->err();
  StartDaemon(other_);
  ASSERT_TRUE(other_.process->WaitForErr("standing by; ")) << other_.process->err();
  ASSERT_TRUE(other_.process->WaitForErr(kFollows)) << other_.process->err();
  // All of this comes after what it has read, and only through the watch.
  Command agent = StartAgent(Flags(), WaitsFor("end"));
  Command peer = StartAgent(Flags(), WaitsFor("end"));
  ASSERT_TRUE(agent.WaitForOut("rank ") && peer.WaitForOut("rank ")) << agent.err() << peer.err();
  EXPECT_FALSE(Contains(agent.err(), "cannot reach")) << "one that stands by is no trouble";

  Kill(one_);
  ASSERT_TRUE(other_.process->WaitForErr("1 job with 2 nodes remembered in"))
      << other_.process->err();
  EXPECT_TRUE(other_.process->WaitForErr(", followed while standing by\n"))
      << other_.process->err();
  ASSERT_TRUE(agent.WaitForErr("reconnected to the rendezvous")) << agent.err();
  ASSERT_TRUE(peer.WaitForErr("reconnected to the rendezvous")) << peer.err();

  // And back again; this time the daemon is told to stop.
  StartDaemon(one_);
  ASSERT_TRUE(one_.process->WaitForErr("standing by; ")) << one_.process->err();
  ASSERT_TRUE(one_.process->WaitForErr(kFollows)) << one_.process->err();
  other_.process->Signal(SIGTERM);
  EXPECT_EQ(other_.process->Wait(), 0) << other_.process->err();
  ASSERT_TRUE(one_.process->WaitForErr("1 job with 2 nodes remembered in")) << one_.process->err();
  EXPECT_TRUE(one_.process->WaitForErr(", followed while standing by\n")) << one_.process->err();
  EndJob(agent, peer);
  EXPECT_EQ(Lines(agent.out()).size(), 1u) << agent.out();
  EXPECT_EQ(Lines(peer.out()).size(), 1u) << peer.out();
}

// "After another daemon had taken over, the nodes stood idle for fifteen seconds when one of them
// was killed."
TEST_F(StandbyTest, DeathOfAnAgentIsToldToTheDaemonThatLeadsNow) {
  ASSERT_NO_FATAL_FAILURE(StartBoth(one_, other_));
  std::vector<std::string> flags = Flags({"--rdzv-conf=last_call_timeout=10000"});
  flags[0] = "--nnodes=1:2";
  const std::string script = "echo world $WORLD_SIZE; test $WORLD_SIZE = 1 || { sleep 10000; :; }";
  Command survivor = StartAgent(flags, script);
  Command lost = StartAgent(flags, script);
  ASSERT_TRUE(survivor.WaitForOut("world 2\n") && lost.WaitForOut("world 2\n")) << survivor.err();
  Kill(one_);
  ASSERT_TRUE(survivor.WaitForErr("reconnected to the rendezvous")) << survivor.err();
  ASSERT_TRUE(lost.WaitForErr("reconnected to the rendezvous")) << lost.err();
  lost.Signal(SIGKILL);
  EXPECT_EQ(survivor.Wait(), 0) << survivor.err();
  EXPECT_EQ(survivor.out(), "world 2\nworld 1\n");
  EXPECT_TRUE(Contains(survivor.err(), "was lost: its agent died, and so did its workers"))
      << survivor.err();
}

// "muster logs -f ended when another daemon took over."
TEST_F(StandbyTest, WhoFollowsLogsGoesOnWithTheNextLeader) {
  ASSERT_NO_FATAL_FAILURE(StartBoth(one_, other_));
  const std::string script = WaitsFor("go") + "; echo rank $RANK goes on; " + WaitsFor("end");
  const std::vector<std::string> logs_dir = {"--redirects=3", "--log-dir=" + Path("logs")};
  Command agent = StartAgent(Flags(logs_dir), script);
  Command peer = StartAgent(Flags(logs_dir), script);
  ASSERT_TRUE(one_.process->WaitForErr("starts: ")) << one_.process->err();
  Command logs({MusterPath(), "logs", "-f", "job", Flags()[2]}, Environment());
  ASSERT_TRUE(logs.WaitForOut("[0]: rank 0 restart 0\n")) << logs.err();
  ASSERT_TRUE(logs.WaitForOut("[1]: rank 1 restart 0\n")) << logs.err();
  Kill(one_);
  Write("go", "");
  ASSERT_TRUE(logs.WaitForOut("[0]: rank 0 goes on\n")) << logs.err();
  ASSERT_TRUE(logs.WaitForOut("[1]: rank 1 goes on\n")) << logs.err();
  EndJob(agent, peer);
  EXPECT_EQ(logs.Wait(), 0) << logs.err();
  EXPECT_EQ(Lines(logs.out()).size(), 6u) << logs.out();
}

// A leader that was stopped finds that it was replaced, and does not serve beside its successor.
TEST_F(StandbyTest, LeaderThatStoodStillStandsByAfterwards) {
  ASSERT_NO_FATAL_FAILURE(StartBoth(one_, other_));
  Command agent = StartAgent(Flags({"--max-restarts=1"}), WaitsFor("end"));
  Command peer = StartAgent(Flags({"--max-restarts=1"}), WaitsFor("end"));
  ASSERT_TRUE(agent.WaitForOut("rank ") && peer.WaitForOut("rank ")) << agent.err() << peer.err();
  const pid_t leader = DaemonOf(one_);
  ASSERT_GT(leader, 1);
  kill(leader, SIGSTOP);
  ASSERT_TRUE(other_.process->WaitForErr("1 job with 2 nodes remembered in"))
      << other_.process->err();
  ASSERT_TRUE(agent.WaitForErr("reconnected to the rendezvous")) << agent.err();
  kill(leader, SIGCONT);
  ASSERT_TRUE(one_.process->WaitForErr("standing by from now on")) << one_.process->err();
  ASSERT_TRUE(one_.process->WaitForErr("standing by; ")) << one_.process->err();
  EndJob(agent, peer);
  EXPECT_EQ(Lines(agent.out()).size(), 1u) << agent.out();
}

// The leader answers tools, wherever it is in the list of endpoints; what was written before a
// daemon died is read from the next.
TEST_F(StandbyTest, ToolsFindTheLeaderAndWhatWasWrittenIsThere) {
  ASSERT_NO_FATAL_FAILURE(StartBoth(other_, one_));
  Command agent = StartAgent(Flags(), WaitsFor("end"));
  Command peer = StartAgent(Flags(), WaitsFor("end"));
  ASSERT_TRUE(agent.WaitForOut("rank ") && peer.WaitForOut("rank ")) << agent.err() << peer.err();
  const auto kv = [this](const std::vector<std::string>& words) {
    std::vector<std::string> argv = Joined({MusterPath(), "kv"}, words);
    argv.push_back("--rdzv-id=job");
    argv.push_back(Flags()[2]);
    return std::make_unique<Command>(argv, Environment());
  };
  const auto set = kv({"set", "epoch", "7"});
  EXPECT_EQ(set->Wait(), 0) << set->err();
  // Waits across the change.
  const auto waits = kv({"get", "later", "--timeout=60"});
  Kill(other_);
  ASSERT_TRUE(one_.process->WaitForErr("1 job with 2 nodes remembered in")) << one_.process->err();
  const auto get = kv({"get", "epoch"});
  EXPECT_EQ(get->Wait(), 0) << get->err();
  EXPECT_EQ(get->out(), "7");
  const auto later = kv({"set", "later", "8"});
  EXPECT_EQ(later->Wait(), 0) << later->err();
  EXPECT_EQ(waits->Wait(), 0) << waits->err();
  EXPECT_EQ(waits->out(), "8");
  EndJob(agent, peer);
}

// "I added tenants for a course, and the leader lost its lease; so did the next one, after seconds
// in which it did not serve."
TEST_F(StandbyTest, SixtyTenantsThatComeAtOnceCostNeitherTheLeadNorARunningJob) {
  const auto file_of = [this](int tenant) {
    return Path("tokens/tenant" + std::to_string(tenant));
  };
  const auto add = [&](int tenant) {
    Command token({MusterPath(), "token", "new", file_of(tenant)});
    EXPECT_EQ(token.Wait(), 0) << token.err();
  };
  const auto status = [&](int tenant) {
    std::vector<std::string> argv = {MusterPath(), "status", Flags()[2]};
    argv.push_back("--token-file=" + file_of(tenant));
    return std::make_unique<Command>(argv, Environment());
  };
  const std::vector<std::string> tokens = {"--tokens=" + Path("tokens")};
  add(0);
  StartDaemon(one_, tokens);
  ASSERT_TRUE(one_.process->WaitForErr("leading, after")) << one_.process->err();
  StartDaemon(other_, tokens);
  ASSERT_TRUE(other_.process->WaitForErr(kFollows)) << other_.process->err();
  const std::vector<std::string> token = {"--token-file=" + file_of(0)};
  Command agent = StartAgent(Flags(token), WaitsFor("end"));
  Command peer = StartAgent(Flags(token), WaitsFor("end"));
  ASSERT_TRUE(agent.WaitForOut("rank ") && peer.WaitForOut("rank ")) << agent.err() << peer.err();

  for (int tenant = 1; tenant <= 60; ++tenant) add(tenant);
  // New connections wait while TLS contexts are created, longer than their clients do.
  ASSERT_TRUE(WaitUntil([&] { return status(1)->Wait() == 0; }, std::chrono::seconds(60)));
  std::vector<std::unique_ptr<Command>> all;
  for (int tenant = 0; tenant <= 60; ++tenant) all.push_back(status(tenant));
  for (int tenant = 0; tenant <= 60; ++tenant) {
    // It gives up after ten seconds, which so many clients at once may take on a busy machine.
    const bool answered =
        all[tenant]->Wait() == 0 || WaitUntil([&] { return status(tenant)->Wait() == 0; });
    EXPECT_TRUE(answered) << all[tenant]->err();
  }
  EXPECT_FALSE(Contains(one_.process->err(), "standing by")) << one_.process->err();
  EXPECT_FALSE(Contains(agent.err(), "connection to the rendezvous")) << agent.err();

  Kill(one_);
  ASSERT_TRUE(other_.process->WaitForErr("1 job with 2 nodes remembered in"))
      << other_.process->err();
  EXPECT_FALSE(Contains(other_.process->err(), "longer than the lease")) << other_.process->err();
  EndJob(agent, peer);
}

// A stop was marked as failed: the daemon had just been elected.
TEST_F(StandbyTest, DaemonThatIsToldToEndWhileItMakesItselfReadyEndsInGoodOrder) {
  // TLS contexts for so many take a second.
  for (int tenant = 0; tenant < 45; ++tenant) {
    Command token({MusterPath(), "token", "new", Path("tokens/t" + std::to_string(tenant))});
    ASSERT_EQ(token.Wait(), 0) << token.err();
  }
  StartDaemon(one_, {"--tokens=" + Path("tokens")});
  ASSERT_TRUE(WaitUntil([this] {
    Command leader({"/usr/bin/env", "ETCDCTL_API=3", "etcdctl",
                    "--endpoints=" + etcd_port_.endpoint(), "get", "/jobs/leader"});
    return leader.Wait() == 0 && !leader.out().empty();
  }));
  one_.process->Signal(SIGTERM);
  EXPECT_EQ(one_.process->Wait(), 0) << one_.process->err();
  EXPECT_FALSE(Contains(one_.process->err(), "exited with code")) << one_.process->err();
}

// "The log said that every tenant was served, and one of them was not."
TEST_F(StandbyTest, TenantsWhoCannotBeServedAreNotCountedAmongThoseWhoAre) {
  for (const char* tenant : {"alice", "bob", "carol"}) {
    Command token({MusterPath(), "token", "new", Path("tokens/" + std::string(tenant))});
    ASSERT_EQ(token.Wait(), 0) << token.err();
  }
  Ctl({"put", "/jobs/tenants/bob/format", "2"});
  StartDaemon(one_, {"--tokens=" + Path("tokens")});
  EXPECT_TRUE(one_.process->WaitForErr("2 of 3 tenants are served, after ")) << one_.process->err();
  EXPECT_TRUE(Contains(one_.process->err(), "tenant 'bob': ")) << one_.process->err();
  EXPECT_FALSE(Contains(one_.process->err(), "every tenant is served")) << one_.process->err();
}

// "etcd was being upgraded when we started the daemon."
TEST_F(StandbyTest, DaemonWaitsForAnEtcdThatDoesNotAnswerAndSaysSo) {
  kill(etcd_->pid(), SIGSTOP);
  StartDaemon(one_);
  ASSERT_TRUE(one_.process->WaitForErr("no member of etcd answers")) << one_.process->err();
  kill(etcd_->pid(), SIGCONT);
  EXPECT_TRUE(one_.process->WaitForErr("leading, after")) << one_.process->err();
}

class EtcdUsersTest : public StandbyTest {
 protected:
  void SetUp() override {
    StandbyTest::SetUp();
    Ctl({"user", "add", "root:pw"});
    Ctl({"user", "grant-role", "root", "root"});
    Ctl({"role", "add", "muster"});
    Ctl({"role", "grant-permission", "muster", "--prefix=true", "readwrite", "/jobs/"});
    AddUser("former");
    Ctl({"auth", "enable"});
  }

  void AddUser(const std::string& password) const {
    Ctl({"--user=root:pw", "user", "add", "muster:" + password});
    Ctl({"--user=root:pw", "user", "grant-role", "muster", "muster"});
  }

  // As an editor, a secret manager or Kubernetes does it: a new file replaces the old one.
  void WritePassword(const std::string& password) const {
    std::filesystem::rename(Write("secrets/next", password + "\n", 0600), Path("secrets/password"));
  }

  std::string Figures(const HeldPort& http) const {
    Command get({"python3", "-c",
                 "import sys, urllib.request\n"
                 "print(urllib.request.urlopen(sys.argv[1]).read().decode())",
                 "http://" + http.endpoint() + "/metrics"});
    get.Wait();
    return get.out();
  }
  bool Shows(const HeldPort& http, const std::string& line) const {
    return WaitUntil([&] { return Contains(Figures(http), line); });
  }
};

// "We changed the password of etcd's user. Months later the leader's machine died, and no daemon
// took over: none of the standbys had been able to log in since, and none had reported it."
TEST_F(EtcdUsersTest, StandbyComesBackWithTheNewPasswordAndSaysUntilThenThatItIsRefused) {
  std::filesystem::create_directory(Path("secrets"));
  WritePassword("former");
  const std::vector<std::string> user = {"--insecure", "--etcd-user=muster",
                                         "--etcd-password-file=" + Path("secrets/password")};
  HeldPort http;
  std::vector<std::string> shown = user;
  shown.push_back("--http=" + http.endpoint());
  StartDaemon(one_, user);
  ASSERT_TRUE(one_.process->WaitForErr("leading, after")) << one_.process->err();
  StartDaemon(other_, shown);
  ASSERT_TRUE(other_.process->WaitForErr(kFollows)) << other_.process->err();
  EXPECT_TRUE(Shows(http, "\nmuster_standby_follows 1\n")) << Figures(http);

  Ctl({"--user=root:pw", "user", "delete", "muster"});
  AddUser("later");
  ASSERT_TRUE(other_.process->WaitForErr("cannot lead: etcd: ")) << other_.process->err();
  EXPECT_TRUE(Shows(http, "\nmuster_standby_follows 0\n")) << Figures(http);

  WritePassword("later");
  EXPECT_TRUE(Shows(http, "\nmuster_standby_follows 1\n")) << other_.process->err();
  Kill(one_);
  EXPECT_TRUE(other_.process->WaitForErr("leading, after")) << other_.process->err();
  EXPECT_TRUE(Shows(http, "\nmuster_jobs{")) << Figures(http);
}

class SmallTransactionsTest : public StandbyTest {
  int MostOperations() const override { return 100; }
};

// "The daemon ended when a job first wrote a hundred keys at once." "It was started every five
// seconds, all night."
TEST_F(SmallTransactionsTest, EtcdWhoseTransactionsAreTooSmallIsRefusedAtTheStart) {
  StartDaemon(one_);
  EXPECT_EQ(one_.process->Wait(), 7);
  EXPECT_TRUE(
      Contains(one_.process->err(),
               "musterd: etcd: etcdserver: too many operations in txn request; Muster needs etcd's "
               "--max-txn-ops and --max-request-bytes to be no less than their defaults\n"))
      << one_.process->err();
  EXPECT_FALSE(Contains(one_.process->err(), "restarting it")) << one_.process->err();
}

// A daemon of another version wrote it.
TEST_F(StandbyTest, JournalOfALaterFormatIsRefusedInOneSentence) {
  Ctl({"put", "/jobs/format", "2"});
  StartDaemon(one_);
  EXPECT_EQ(one_.process->Wait(), 7);
  EXPECT_TRUE(Contains(
      one_.process->err(),
      "musterd: the journal in etcd has format 2, and this version of Muster knows format 1: start "
      "the version that wrote it, or name another path in etcd\n"))
      << one_.process->err();
}

}  // namespace
}  // namespace muster::test
