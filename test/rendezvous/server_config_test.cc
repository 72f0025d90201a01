#include "rendezvous/server_config.h"

#include <sys/stat.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/site_authority.h"
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
      {{"--listen=:29400"}, "--listen=:29400 has no host"},
      {{"--listen=a:65536"}, "--listen=a:65536 has a bad port"},
      {{"--listen=::1"}, "--listen=::1 has a bad host"},
      {{"--ready-fd=-1"}, "--ready-fd"},
      {{"--ready-fd=three"}, "--ready-fd"},
      {{"--state-dir="}, "--state-dir"},
      {{"--state-dir", ""}, "--state-dir is empty"},
      {{"--state=/var/lib/muster"}, "--state=/var/lib/muster is not etcd://"},
      {{"--state="}, "--state"},
      {{"--state=etcd://"}, "--state=etcd:// names '', which is not the HOST:PORT"},
      {{"--state=etcd://a,b:0/x"}, "names 'b:0'"},
      // The password was in the log.
      {{"--state=etcd://me:se/cret@a,b/x"}, "musterd: --state=etcd://...@a,b/x names a user; that"},
      {{"--state=http://me:secret@a/x"}, "musterd: --state=http://...@a/x is not etcd://"},
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
      {{"--http=99999"}, "--http=99999 has a bad port"},
      {{"--http=0.0.0.0:9400"}, "--http=0.0.0.0:9400 would send tokens over the network"},
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
  EXPECT_EQ(Parse({"--config", FileOf("listen = \"a\\u003a7\"\n")}).listen, (Endpoint{"a", 7}));
  EXPECT_EQ(Parse({"--config", FileOf("log-level = \"\"\"\ndebug\"\"\"\n")}).log_level, "debug");
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
      {FileOf("lisen = \"a:1\"\n"), "sets 'lisen', which is not a setting"},
      {FileOf("[rendezvous]\nlisten = \"a:1\"\n"), "sets '[rendezvous]'"},
      {FileOf("help = true\n"), "sets 'help'"},
      {FileOf("config = \"other.toml\"\n"), "sets 'config'"},
      {FileOf("print-limits = true\n"), "sets 'print-limits'"},
      {FileOf("drain-timeout = \"soon\"\n"), "--drain-timeout"},
      {FileOf("log-level = \"loud\"\n"), "--log-level"},
      {FileOf("listen = \"a:65536\"\n"), "--listen=a:65536 has a bad port"},
      {FileOf("tokens = \"/t\"\ninsecure = true\n"), "--tokens is for several tenants"},
      {FileOf("listen = [\"a:1\"]\n"), "sets 'listen' to what is neither a string nor a number"},
      {FileOf("drain-timeout = 1.5\n"), "--drain-timeout=1.5 "},
      // What is no TOML was taken: the flag had no value, or its first one.
      {FileOf("listen = \"a:1\"\ninsecure\n"), ", line 2, is not TOML: "},
      {FileOf("listen = \"a:1\"\nlisten = \"b:1\"\n"), ", line 2, is not TOML: "},
      {FileOf("listen = \"a:1\" b\n"), ", line 1, is not TOML: "},
      {"/no/such/file", "--config=/no/such/file is not a readable file"},
      {"/", "--config=/ is not a readable file"},
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
                              " is not a readable file; name one, or leave the flag out\n");
  }
}

// "Another file in its place, and its bytes went to my terminal."
TEST(ServerConfigTest, ConfigFileOfAnotherKindIsQuotedSafely) {
  struct Case {
    std::string file;
    std::string said;
  };
  const Case cases[] = {
      {"\x1b[2J\x07\xff" + std::string(300, 'x') + "\x7f\r = 1\n", ", line 1, is not TOML: "},
      {"\"\\u001b[2J" + std::string(300, 'x') + "\" = 1\n", "', which is not a setting"},
  };
  for (const Case& c : cases) {
    const auto parsed = ParseServerConfig({"--config", FileOf(c.file)});
    const auto* exit = std::get_if<EarlyExit>(&parsed);
    ASSERT_NE(exit, nullptr) << c.said;
    EXPECT_THAT(exit->text, HasSubstr(c.said));
    EXPECT_LT(exit->text.size(), 400u);
    for (const char byte : exit->text.substr(0, exit->text.size() - 1)) {
      EXPECT_TRUE(byte >= ' ' && byte < '\x7f') << exit->text;
    }
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

// A daemon whose file of authorities was being written sent its password in plain text.
TEST(ServerConfigTest, EmptyFileOfEtcdIsRefused) {
  const test::TempDir dir;
  std::ofstream(dir.Path("ca")) << "\n";
  const auto read = ReadEtcdOptions({.members = {"h1:2379"}, .authority = dir.Path("ca")});
  EXPECT_EQ(read.status().message(), "read " + dir.Path("ca") + ": it is empty");
}

// "etcd: Endpoint read failed", "empty address list": the daemon's own certificate had expired, was
// not valid yet, or had another key.
TEST(ServerConfigTest, CertificateThatEtcdCannotTakeIsToldByItsFile) {
  const test::TempDir dir;
  const test::SiteAuthority site("site");
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(dir.Path(name)) << text;
    return dir.Path(name);
  };
  const auto reads = [&](const test::SiteAuthority::Leaf& leaf, const std::string& key) {
    return std::string(ReadEtcdOptions({.members = {"h1:2379"},
                                        .authority = write("ca", site.certificate()),
                                        .certificate = write("own", leaf.certificate),
                                        .key = write("key", key)})
                           .status()
                           .message());
  };
  const absl::Time now = absl::Now();
  const auto good = site.Issue("DNS:d");
  const auto old = site.Issue("DNS:d", now - absl::Hours(2), now - absl::Hours(1));
  const auto early = site.Issue("DNS:d", now + absl::Hours(1), now + absl::Hours(2));
  EXPECT_EQ(reads(good, good.key), "");
  EXPECT_THAT(reads(old, old.key), HasSubstr("use " + dir.Path("own") + ": it has expired, on "));
  EXPECT_THAT(reads(early, early.key), HasSubstr(": it is not valid before "));
  EXPECT_EQ(reads(good, old.key),
            "use " + dir.Path("key") + ": it is not the key of " + dir.Path("own"));
  EXPECT_THAT(reads({.certificate = "x", .key = good.key}, good.key),
              HasSubstr(": it holds no PEM certificate"));
  EXPECT_THAT(reads(good, "x"), HasSubstr(": it holds no unencrypted PEM private key"));
  // "Endpoint read failed", too: it was issued for a server. "Empty address list": its key was too
  // weak ...
  const auto issued = [&](const test::SiteAuthority& by, EVP_PKEY* key, const char* purpose) {
    const auto leaf = by.Issue(key, "DNS:d", {{NID_ext_key_usage, purpose}});
    return reads(leaf, leaf.key);
  };
  const auto curve = [] { return EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"); };
  const auto weak = [] { return EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{1024}); };
  EXPECT_EQ(issued(site, curve(), "clientAuth"), "");
  EXPECT_THAT(issued(site, curve(), "serverAuth"), HasSubstr(": it is not a client certificate: "));
  EXPECT_THAT(issued(site, weak(), "clientAuth"), HasSubstr(": it has a key of 1024 bits, "));
  // ... which holds for one that another authority has signed, as etcd may know that one.
  const test::SiteAuthority other("other");
  EXPECT_EQ(issued(other, curve(), "clientAuth"), "");
  EXPECT_THAT(issued(other, curve(), "serverAuth"),
              HasSubstr(": it is not a client certificate: "));
  EXPECT_THAT(issued(other, weak(), "clientAuth"), HasSubstr(": it has a key of 1024 bits, "));
}

// "no member of etcd answers; ... empty address list:", for ever.
TEST(ServerConfigTest, AuthorityOfEtcdThatIsNoneIsRefused) {
  const test::TempDir dir;
  std::ofstream(dir.Path("ca")) << "node0\n";
  EXPECT_EQ(
      ReadEtcdOptions({.members = {"h1:2379"}, .authority = dir.Path("ca")}).status().message(),
      "use " + dir.Path("ca") + ": it holds no PEM certificate");
}

// "Enter PEM pass phrase:", and the daemon stood still for ever, also when told to end.
TEST(ServerConfigTest, KeyForEtcdThatNeedsAPasswordIsRefusedWithoutAskingForIt) {
  const test::TempDir dir;
  const test::SiteAuthority site("site");
  EVP_PKEY* const key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  BIO* const locked = BIO_new_file(dir.Path("key").c_str(), "w");
  PEM_write_bio_PKCS8PrivateKey(locked, key, EVP_aes_256_cbc(), "x", 1, nullptr, nullptr);
  BIO_free(locked);
  std::ofstream(dir.Path("ca")) << site.certificate();
  std::ofstream(dir.Path("own")) << site.Issue(key, "DNS:d", {}).certificate;
  EXPECT_EQ(ReadEtcdOptions({.members = {"h1:2379"},
                             .authority = dir.Path("ca"),
                             .certificate = dir.Path("own"),
                             .key = dir.Path("key")})
                .status()
                .message(),
            "use " + dir.Path("key") + ": it holds no unencrypted PEM private key");
}

}  // namespace
}  // namespace muster::rendezvous
