// Tokens as users meet them, in real processes: who gets in, who does not, and what he is told.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/e2e/e2e_fixture.h"
#include "test/support/site_authority.h"

namespace muster::test {
namespace {

using Words = std::vector<std::string>;

class TokenTest : public E2eTest {
 protected:
  // Of another user: a place for tokens that is not that of the test's other programs.
  std::string Stranger() const { return "XDG_CONFIG_HOME=" + Path("stranger"); }
  std::string OwnFile() const { return Path("config/muster/token"); }

  static Command Muster(Words words, const Words& environment = {}) {
    words.insert(words.begin(), MusterPath());
    return Command(std::move(words), environment);
  }
  static Words AtDaemon(const Daemon& daemon, Words more = {}) {
    more.insert(more.end(), {"--rdzv-endpoint=" + daemon.endpoint, "--rdzv-id=job"});
    return more;
  }
  Command Join(const Daemon& daemon, Words more, const Words& environment = {}) {
    Words words = AtDaemon(daemon, std::move(more));
    words.insert(words.end(), {"--no-python", "true"});
    return StartMuster(std::move(words), environment);
  }
  void ExpectRefused(Command refused, const std::string& why) {
    EXPECT_EQ(refused.Wait(), 3) << refused.err();
    EXPECT_TRUE(Contains(refused.err(), why));
  }
};

TEST_F(TokenTest, OneIsMadeShownOnRequestAndNeverOverwritten) {
  const std::string file = Path("folder/token");
  Command made = Muster({"token", "new", file});
  EXPECT_EQ(made.Wait(), 0) << made.err();
  EXPECT_EQ(made.out(), file + "\n");
  struct stat status = {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);

  Command shown = Muster({"token", "show", file});
  EXPECT_EQ(shown.Wait(), 0) << shown.err();
  EXPECT_EQ(shown.out().size(), 65U);

  Command again = Muster({"token", "new", file});
  EXPECT_EQ(again.Wait(), 2);
  EXPECT_TRUE(Contains(again.err(), "it is there already"));
  Command same = Muster({"token", "show"}, {"MUSTER_TOKEN_FILE=" + file});
  EXPECT_EQ(same.Wait(), 0) << same.err();
  EXPECT_EQ(same.out(), shown.out());
}

TEST_F(TokenTest, MistakesAreOneSentence) {
  for (const Words& words :
       {Words{}, Words{"old"}, Words{"new", "a", "b"}, Words{"new", "--force"}, Words{"new", ""}}) {
    Words all = {"token"};
    all.insert(all.end(), words.begin(), words.end());
    Command wrong = Muster(all);
    EXPECT_EQ(wrong.Wait(), 2);
    EXPECT_EQ(Lines(wrong.err()).size(), 1U);
    EXPECT_TRUE(Contains(wrong.err(), "write `muster token` and new, show, rotate or metrics"));
  }
  Command nowhere = Muster({"token", "show"});
  EXPECT_EQ(nowhere.Wait(), 2);
  EXPECT_TRUE(Contains(nowhere.err(), "read token file " + OwnFile()));
}

// One user's jobs on a machine are closed to its other users, who need nothing but another home.
TEST_F(TokenTest, AnotherUserOfTheMachineCanNeitherJoinNorLookNorWrite) {
  Daemon daemon = StartDaemon();
  const std::string why = "it was started with another token than the one here";
  ExpectRefused(Join(daemon, {}, {Stranger()}), why);
  ExpectRefused(Muster({"status", "--rdzv-endpoint=" + daemon.endpoint}, {Stranger()}), why);
  Words set = AtDaemon(daemon, {"kv"});
  set.insert(set.end(), {"set", "key", "value"});
  ExpectRefused(Muster(set, {Stranger()}), why);
  set.push_back("--insecure");
  ExpectRefused(Muster(set), "it asks for the token that it was started with");

  EXPECT_TRUE(daemon.process.WaitForErr(
      "127.0.0.1 has begun TLS and has not come to a call: it may have another token, or none"))
      << daemon.process.err();

  Command own = Join(daemon, {});
  EXPECT_EQ(own.Wait(), 0) << own.err();
}

TEST_F(TokenTest, BothEndsGoWithoutOrNeitherDoes) {
  Daemon secure = StartDaemon();
  ExpectRefused(Join(secure, {"--insecure"}),
                "cannot be joined: it asks for the token that it was started with");

  Command plain({DaemonPath(), "--insecure", "--listen=127.0.0.1:0", "--ready-fd=1"});
  ASSERT_TRUE(plain.WaitForOut("\n")) << plain.err();
  EXPECT_TRUE(plain.WaitForErr("--insecure: whoever reaches 127.0.0.1:0 can join")) << plain.err();
  const std::string endpoint = "127.0.0.1:" + Lines(plain.out())[0];
  const Daemon open = {.process = std::move(plain), .endpoint = endpoint};
  ExpectRefused(Join(open, {}), "cannot be joined: it was started without a token");
  Command trusting = Join(open, {}, {"MUSTER_INSECURE=1"});
  EXPECT_EQ(trusting.Wait(), 0) << trusting.err();
  EXPECT_TRUE(Contains(trusting.err(), "can join, read and end this job"));
}

// Workers call `muster kv` and have no need of a flag; they know where the secret is, not what.
TEST_F(TokenTest, WorkersReachTheStoreAndDoNotHoldTheSecret) {
  const std::string file = Path("team");
  EXPECT_EQ(Muster({"token", "new", file}).Wait(), 0);
  Command shown = Muster({"token", "show", file});
  EXPECT_EQ(shown.Wait(), 0);
  const HeldPort port;
  Command agent =
      StartAgent({"--nnodes=1", "--token-file=" + file, "--rdzv-endpoint=" + port.endpoint()},
                 MusterPath() + " kv set key value && " + MusterPath() +
                     " kv get key && env && cat "
                     "/proc/$PPID/cmdline");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_TRUE(Contains(agent.out(), "value"));
  EXPECT_TRUE(Contains(agent.out(), "MUSTER_TOKEN_FILE=" + file));
  const std::string secret = shown.out().substr(0, 64);
  EXPECT_EQ((agent.out() + agent.err()).find(secret), std::string::npos);
}

// Certificates of a site's own authority, which every node of the site has anyway.
TEST_F(TokenTest, CertificatesOfASiteTakeTheTokensPlaceEverywhere) {
  const SiteAuthority site("site");
  const auto files = [&](const std::string& name, const char* names) {
    const auto leaf = site.Issue(names);
    return Words{"--tls-ca=" + Write("ca", site.certificate(), 0644),
                 "--tls-cert=" + Write(name + ".crt", leaf.certificate, 0644),
                 "--tls-key=" + Write(name + ".key", leaf.key, 0600)};
  };
  Words daemon_words = {DaemonPath(), "--listen=127.0.0.1:0", "--ready-fd=1"};
  for (const std::string& flag : files("daemon", "IP:127.0.0.1")) daemon_words.push_back(flag);
  Command process(daemon_words);
  ASSERT_TRUE(process.WaitForOut("\n")) << process.err();
  const std::string endpoint = "127.0.0.1:" + Lines(process.out())[0];
  const Daemon daemon = {.process = std::move(process), .endpoint = endpoint};

  Words node = files("node", "DNS:node");
  Words flags = AtDaemon(daemon, node);
  Command agent =
      StartAgent(flags, MusterPath() + " kv set key value && " + MusterPath() + " kv get key");
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
  EXPECT_TRUE(Contains(agent.out(), "value"));
  Words status = {"status", "--rdzv-endpoint=" + endpoint};
  status.insert(status.end(), node.begin(), node.end());
  EXPECT_EQ(Muster(status).Wait(), 0);

  ExpectRefused(Join(daemon, {}), "it was started with another token than the one here");
  Command half = Join(daemon, {node[0], node[1]});
  EXPECT_EQ(half.Wait(), 2);
  EXPECT_TRUE(Contains(half.err(), "certificates of a site's own take three files"));
  const auto old =
      site.Issue("DNS:node", absl::Now() - absl::Hours(2), absl::Now() - absl::Hours(1));
  Write("node.crt", old.certificate, 0644);
  Write("node.key", old.key, 0600);
  Command expired = Join(daemon, node);
  EXPECT_EQ(expired.Wait(), 2);
  EXPECT_EQ(Lines(expired.err()).size(), 1U) << expired.err();
  EXPECT_TRUE(Contains(expired.err(), "node.crt: it has expired, on "));
}

// Should somebody take it over all the same: rendezvous/confine.h.
TEST_F(TokenTest, ADaemonHasGivenUpWhatItDoesNotNeed) {
  const Daemon daemon = StartDaemon();
  const std::string process = "/proc/" + std::to_string(daemon.process.pid());
  for (const auto& task : std::filesystem::directory_iterator(process + "/task")) {
    std::ifstream file(task.path() / "status");
    const std::string status(std::istreambuf_iterator<char>(file), {});
    EXPECT_TRUE(Contains(status, "NoNewPrivs:\t1"));
    EXPECT_TRUE(Contains(status, "Seccomp:\t2"));
  }
}

TEST_F(TokenTest, ADescriptorIsASourceAsWell) {
  const Daemon daemon = StartDaemon();
  Command agent({"/bin/sh", "-c",
                 "exec " + MusterPath() + " run --token-fd=3 --rdzv-endpoint=" + daemon.endpoint +
                     " --rdzv-id=job --no-python true 3<" + OwnFile()},
                {Stranger()});
  EXPECT_EQ(agent.Wait(), 0) << agent.err();
}

TEST_F(TokenTest, AnAddressThatOthersCanReachIsRefusedWithoutOne) {
  Command agent = StartMuster({"--rdzv-endpoint=10.0.0.1:29400", "--no-python", "true"});
  EXPECT_EQ(agent.Wait(), 2);
  EXPECT_EQ(Lines(agent.err()).size(), 1U) << agent.err();
  EXPECT_TRUE(Contains(agent.err(),
                       "no token for the rendezvous at 10.0.0.1:29400, which other "
                       "machines can reach: make one with `muster token new`"));
  Command daemon({DaemonPath(), "--listen=10.0.0.1:29400"});
  EXPECT_EQ(daemon.Wait(), 2);
  EXPECT_TRUE(Contains(daemon.err(), "no token for the rendezvous at 10.0.0.1:29400"));
}

TEST_F(TokenTest, AFileThatOthersCanReadIsRefused) {
  const HeldPort port;
  Command agent = StartMuster({"--token-file=" + Write("open", std::string(64, 'a') + "\n", 0644),
                               "--rdzv-endpoint=" + port.endpoint(), "--no-python", "true"});
  EXPECT_EQ(agent.Wait(), 2);
  EXPECT_TRUE(Contains(agent.err(), "other users can read or change it"));
  EXPECT_EQ(agent.err().find("aaaa"), std::string::npos) << agent.err();
}

}  // namespace
}  // namespace muster::test
