#include "rendezvous/server_config.h"

#include <sys/stat.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using ::testing::HasSubstr;

// What the arguments mean; they must be good.
ServerConfig Parse(std::vector<std::string> arguments) {
  const auto parsed = ParseServerConfig(std::move(arguments));
  const auto* exit = std::get_if<EarlyExit>(&parsed);
  EXPECT_EQ(exit, nullptr) << exit->text;
  return exit == nullptr ? std::get<ServerConfig>(parsed) : ServerConfig{};
}

TEST(ServerConfigTest, WithoutFlagsItListensOnLoopbackOnly) {
  const ServerConfig config = Parse({});
  EXPECT_EQ(config.listen, (Endpoint{"127.0.0.1", 29400}));
  EXPECT_EQ(config.ready_fd, -1);
  EXPECT_EQ(config.drain_timeout, std::chrono::seconds(30));
  EXPECT_EQ(config.log_level, "info");
}

TEST(ServerConfigTest, EveryFlagIsRead) {
  const ServerConfig config = Parse(
      {"--listen", "0.0.0.0:1234", "--ready-fd=3", "--drain-timeout", "0", "--log-level=debug"});
  EXPECT_EQ(config.listen, (Endpoint{"0.0.0.0", 1234}));
  EXPECT_EQ(config.ready_fd, 3);
  EXPECT_EQ(config.drain_timeout, std::chrono::seconds(0));
  EXPECT_EQ(config.log_level, "debug");
}

TEST(ServerConfigTest, EtcdIsNamedByItsMembersAndAPath) {
  const ServerConfig config =
      Parse({"--state=etcd://h1,h2:1234,[::1]:5/a/b/", "--etcd-ca=ca", "--etcd-cert=cert",
             "--etcd-key=key", "--etcd-user=me", "--etcd-password-file=word"});
  ASSERT_TRUE(config.etcd.has_value());
  EXPECT_EQ(config.etcd->members, (std::vector<std::string>{"h1:2379", "h2:1234", "[::1]:5"}));
  EXPECT_EQ(config.etcd->root, "/a/b");
  EXPECT_EQ(config.etcd->authority, "ca");
  EXPECT_EQ(config.etcd->password_file, "word");
  EXPECT_TRUE(config.remembers());
  EXPECT_EQ(Parse({"--state=etcd://h1"}).etcd->root, "/muster");
  EXPECT_FALSE(Parse({}).remembers());
}

TEST(ServerConfigTest, PagesAreForThisMachineUnlessAnAddressIsNamed) {
  EXPECT_EQ(Parse({}).http, std::nullopt);
  EXPECT_EQ(Parse({"--http=9400"}).http, (Endpoint{"127.0.0.1", 9400}));
  EXPECT_EQ(Parse({"--http=[::1]:0"}).http, (Endpoint{"::1", 0}));
  EXPECT_EQ(Parse({"--http=0.0.0.0:9400", "--insecure"}).http, (Endpoint{"0.0.0.0", 9400}));
}

TEST(ServerConfigTest, LimitsArePrintedWithTheirReasons) {
  const auto parsed = ParseServerConfig({"--print-limits"});
  const auto* exit = std::get_if<EarlyExit>(&parsed);
  ASSERT_NE(exit, nullptr);
  EXPECT_EQ(exit->exit_code, 0);
  EXPECT_THAT(exit->text, HasSubstr("         512  bytes of a key: keys are names\n"));
  EXPECT_THAT(exit->text, HasSubstr("   536870912  bytes of all jobs' keys and values"));
}

TEST(ServerConfigTest, ListenTakesEveryFormOfAnEndpoint) {
  EXPECT_EQ(Parse({"--listen=127.0.0.1:0"}).listen, (Endpoint{"127.0.0.1", 0}));
  EXPECT_EQ(Parse({"--listen=node0"}).listen, (Endpoint{"node0", 29400}));
  EXPECT_EQ(Parse({"--listen=[::1]:80"}).listen, (Endpoint{"::1", 80}));
}

TEST(ServerConfigTest, EveryLogLevelIsTaken) {
  for (const char* level : {"trace", "debug", "info", "warning", "error", "off"}) {
    EXPECT_EQ(Parse({"--log-level", level}).log_level, level);
  }
}

TEST(ServerConfigTest, MistakesAreOneSentenceAndExitCode2) {
  struct Case {
    std::vector<std::string> arguments;
    const char* said;
  };
  const Case cases[] = {
      {{"--no-such-flag"}, "--no-such-flag"},
      {{"surplus"}, "surplus"},
      {{"--listen"}, "--listen"},
      {{"--listen="}, "--listen"},
      {{"--listen=:29400"}, "--listen=:29400 names no host"},
      {{"--listen=a:65536"}, "--listen=a:65536 has a bad port"},
      {{"--listen=::1"}, "--listen=::1 has a bad host"},
      {{"--ready-fd=-1"}, "--ready-fd"},
      {{"--ready-fd=three"}, "--ready-fd"},
      {{"--state-dir="}, "--state-dir"},
      {{"--state-dir", ""}, "--state-dir names no directory"},
      {{"--state=/var/lib/muster"}, "--state=/var/lib/muster is not etcd://"},
      {{"--state="}, "--state"},
      {{"--state=etcd://"}, "--state=etcd:// names '', which is no HOST:PORT"},
      {{"--state=etcd://a,b:0/x"}, "names 'b:0'"},
      {{"--state=etcd://a", "--state-dir=b"}, "drop one of them"},
      {{"--state=etcd://a", "--etcd-cert=b"}, "--etcd-cert and --etcd-key go together"},
      {{"--state=etcd://a", "--etcd-cert=b", "--etcd-key=c"}, "--etcd-ca"},
      {{"--state=etcd://a", "--etcd-user=b"}, "--etcd-password-file"},
      {{"--etcd-ca=b"}, "--etcd-ca is for --state"},
      {{"--drain-timeout=-1"}, "--drain-timeout"},
      {{"--drain-timeout=soon"}, "--drain-timeout"},
      {{"--drain-timeout=99999999999"}, "--drain-timeout"},
      {{"--log-level=loud"}, "--log-level"},
      {{"--http=x"}, "--http=x has no port"},
      {{"--http=0.0.0.0:9400"}, "--http=0.0.0.0:9400 would have tokens sent over the network"},
      {{"--http=9400", "--tls-ca=a", "--tls-cert=b", "--tls-key=c"},
       "--http=9400 asks for a token"},
  };
  for (const Case& c : cases) {
    const auto parsed = ParseServerConfig(c.arguments);
    const auto* exit = std::get_if<EarlyExit>(&parsed);
    ASSERT_NE(exit, nullptr) << c.arguments[0];
    EXPECT_EQ(exit->exit_code, 2) << c.arguments[0];
    EXPECT_EQ(exit->text.substr(0, 9), "musterd: ") << exit->text;
    EXPECT_THAT(exit->text, HasSubstr(c.said));
    EXPECT_EQ(exit->text.find('\n'), exit->text.size() - 1) << exit->text;
  }
}

TEST(ServerConfigTest, HelpNamesEveryFlagAndItsDefault) {
  const auto parsed = ParseServerConfig({"--help"});
  const auto* exit = std::get_if<EarlyExit>(&parsed);
  ASSERT_NE(exit, nullptr);
  EXPECT_EQ(exit->exit_code, 0);
  for (const char* said : {"--listen", "127.0.0.1:29400", "--ready-fd", "--drain-timeout", "30",
                           "--log-level", "info", "--version"}) {
    EXPECT_THAT(exit->text, HasSubstr(said));
  }
}

// A file with this content.
std::string FileOf(const std::string& content) {
  static int count = 0;
  const std::string path = testing::TempDir() + "/musterd" + std::to_string(count++) + ".toml";
  std::ofstream(path) << content;
  return path;
}

TEST(ServerConfigTest, ConfigFileSaysWhatFlagsSay) {
  const ServerConfig config = Parse({"--config", FileOf("# of this cluster\n"
                                                        "listen = \"[::1]:1234\"\n"
                                                        "state-dir = \"/var/lib/muster\"\n"
                                                        "tokens = \"/etc/muster/tokens\"\n"
                                                        "drain-timeout = 7\n"
                                                        "log-level = \"debug\"\n")});
  EXPECT_EQ(config.listen, (Endpoint{"::1", 1234}));
  EXPECT_EQ(config.state_dir, "/var/lib/muster");
  EXPECT_EQ(config.tokens, "/etc/muster/tokens");
  EXPECT_EQ(config.drain_timeout, std::chrono::seconds(7));
  EXPECT_EQ(config.log_level, "debug");
  EXPECT_TRUE(Parse({"--config", FileOf("insecure = true\n")}).token.insecure);
}

TEST(ServerConfigTest, FlagOutdoesConfigFile) {
  const std::string file = FileOf("listen = \"node0:1\"\nlog-level = \"debug\"\n");
  const ServerConfig config = Parse({"--listen=node1:2", "--config=" + file});
  EXPECT_EQ(config.listen, (Endpoint{"node1", 2}));
  EXPECT_EQ(config.log_level, "debug");
}

// The keeper of a socket unit's sockets says last where they listen.
TEST(ServerConfigTest, LastListenIsTaken) {
  EXPECT_EQ(Parse({"--listen=node1:2", "--listen=[::]:3"}).listen, (Endpoint{"::", 3}));
}

TEST(ServerConfigTest, MistakesInConfigFileAreOneSentenceAndExitCode2) {
  struct Case {
    std::string file;
    std::string said;
  };
  const Case cases[] = {
      {FileOf("lisen = \"a:1\"\n"), "sets 'lisen', which is no setting of a file"},
      {FileOf("[rendezvous]\nlisten = \"a:1\"\n"), "sets '[rendezvous]'"},
      {FileOf("help = true\n"), "sets 'help'"},
      {FileOf("config = \"other.toml\"\n"), "sets 'config'"},
      {FileOf("print-limits = true\n"), "sets 'print-limits'"},
      {FileOf("drain-timeout = \"soon\"\n"), "--drain-timeout"},
      {FileOf("log-level = \"loud\"\n"), "--log-level"},
      {FileOf("listen = \"a:65536\"\n"), "--listen=a:65536 has a bad port"},
      {FileOf("tokens = \"/t\"\ninsecure = true\n"), "--tokens is for several tenants"},
      {"/no/such/file", "--config=/no/such/file is no file that can be read"},
      {"/", "--config=/ is no file that can be read"},
  };
  for (const Case& c : cases) {
    const auto parsed = ParseServerConfig({"--config", c.file});
    const auto* exit = std::get_if<EarlyExit>(&parsed);
    ASSERT_NE(exit, nullptr) << c.said;
    EXPECT_EQ(exit->exit_code, 2) << c.said;
    EXPECT_THAT(exit->text, testing::StartsWith("musterd: "));
    EXPECT_THAT(exit->text, HasSubstr(c.said));
    EXPECT_EQ(exit->text.find('\n'), exit->text.size() - 1) << exit->text;
  }
}

// "A FIFO in the file's place, and musterd hung without a word."
TEST(ServerConfigTest, ConfigFileThatIsNoFileIsNotWaitedFor) {
  const test::TempDir directory;
  const std::string fifo = directory.Path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, std::string("/dev/zero")}) {
    const auto parsed = ParseServerConfig({"--config", path});
    const auto* exit = std::get_if<EarlyExit>(&parsed);
    ASSERT_NE(exit, nullptr) << path;
    EXPECT_EQ(exit->text, "musterd: --config=" + path +
                              " is no file that can be read; name one, or leave the flag out\n");
  }
}

// "Another file in its place, and its bytes went to my terminal."
TEST(ServerConfigTest, ConfigFileOfAnotherKindIsQuotedSafely) {
  const auto parsed = ParseServerConfig(
      {"--config", FileOf("\x1b[2J\x07\xff" + std::string(300, 'x') + "\x7f\r = 1\n")});
  const auto* exit = std::get_if<EarlyExit>(&parsed);
  ASSERT_NE(exit, nullptr);
  EXPECT_THAT(exit->text, HasSubstr("', which is no setting of a file"));
  EXPECT_LT(exit->text.size(), 400u);
  for (const char byte : exit->text.substr(0, exit->text.size() - 1)) {
    EXPECT_TRUE(byte >= ' ' && byte < '\x7f') << exit->text;
  }
}

TEST(ServerConfigTest, VersionIsOneLine) {
  const auto parsed = ParseServerConfig({"--version"});
  const auto* exit = std::get_if<EarlyExit>(&parsed);
  ASSERT_NE(exit, nullptr);
  EXPECT_EQ(exit->exit_code, 0);
  EXPECT_EQ(exit->text.substr(0, 8), "musterd ");
  EXPECT_EQ(exit->text.find('\n'), exit->text.size() - 1);
}

}  // namespace
}  // namespace muster::rendezvous
