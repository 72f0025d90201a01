// What a keeper makes of its configuration, at the start and later.
#include "rendezvous/server_config.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReloadableConfigTest : public testing::Test {
 protected:
  // The configuration of `musterd --config=FILE MORE`.
  ReloadableConfig Begin(const std::string& text, std::vector<std::string> more = {},
                         std::optional<Endpoint> given = std::nullopt) {
    Put(text);
    std::vector<std::string> argv = {"musterd", "--config=" + file_};
    argv.insert(argv.end(), more.begin(), more.end());
    ServerConfig config = Parse({argv.begin() + 1, argv.end()});
    if (given) config.listen = *given;
    return ReloadableConfig(std::move(argv), std::move(config), given.has_value());
  }
  void Put(const std::string& text) { directory_.Write("musterd.toml", text); }
  static ServerConfig Parse(std::vector<std::string> arguments) {
    const auto parsed = ParseServerConfig(std::move(arguments));
    const auto* config = std::get_if<ServerConfig>(&parsed);
    EXPECT_NE(config, nullptr);
    return config == nullptr ? ServerConfig{} : *config;
  }

  const test::TempDir directory_;
  const std::string file_ = directory_.Path("musterd.toml");
  const std::string state_ = "state-dir = \"" + directory_.Path("state") + "\"\n";
};

TEST_F(ReloadableConfigTest, DaemonIsToldAllThatTheFileSays) {
  const ReloadableConfig kept = Begin(
      "listen = \"[::1]:7\"\nstate-dir = \"/s\"\nlog-level = \"debug\"\n"
      "tls-ca = \"/a\"\ntls-cert = \"/c\"\ntls-key = \"/k\"\n");
  const std::vector<std::string> argv = kept.Argv();
  EXPECT_THAT(argv,
              ElementsAre("musterd", "--listen=[::1]:7", "--state-dir=/s", "--log-level=debug",
                          "--tls-ca=/a", "--tls-cert=/c", "--tls-key=/k"));
  const ServerConfig daemons = Parse({argv.begin() + 1, argv.end()});
  EXPECT_EQ(daemons.listen, (Endpoint{"::1", 7}));
  EXPECT_EQ(daemons.token.tls.ca, "/a");
}

TEST_F(ReloadableConfigTest, EveryWayToMeetTheDaemonIsHandedOn) {
  EXPECT_THAT(Begin(state_ + "insecure = true\n").Argv(), Contains("--insecure"));
  EXPECT_THAT(Begin(state_ + "token-file = \"/t\"\n").Argv(), Contains("--token-file=/t"));
  EXPECT_THAT(Begin(state_ + "tokens = \"/t\"\n").Argv(), Contains("--tokens=/t"));
}

// "With a socket unit, `musterd --` did not start: '--listen' was not expected."
TEST_F(ReloadableConfigTest, EndOfTheFlagsIsNoArgumentOfTheDaemon) {
  const ReloadableConfig kept = Begin(state_, {"--"}, Endpoint{"::", 3});
  EXPECT_EQ(kept.Argv()[1], "--listen=[::]:3");
  EXPECT_EQ(kept.Argv().back(), "--log-level=info");
}

TEST_F(ReloadableConfigTest, WhatHasChangedIsReadAgain) {
  ReloadableConfig kept = Begin(state_);
  Put(state_ + "log-level = \"debug\"\n");
  const auto argv = kept.ReadAgain();
  ASSERT_TRUE(argv.ok()) << argv.status();
  EXPECT_THAT(*argv, Contains("--log-level=debug"));
}

TEST_F(ReloadableConfigTest, StateDirectoryMayBeSpelledAnotherWay) {
  ReloadableConfig kept = Begin(state_);
  Put("state-dir = \"" + directory_.path() + "/./state/\"\n");
  EXPECT_TRUE(kept.ReadAgain().ok());
}

TEST_F(ReloadableConfigTest, EtcdStaysAndItsCredentialsMayChange) {
  ReloadableConfig kept = Begin("state = \"etcd://a,b/jobs\"\netcd-ca = \"ca\"\n");
  EXPECT_THAT(kept.Argv(), Contains("--state=etcd://a,b/jobs"));
  Put("state = \"etcd://a,b/jobs\"\netcd-ca = \"other\"\n");
  const auto argv = kept.ReadAgain();
  ASSERT_TRUE(argv.ok()) << argv.status();
  EXPECT_THAT(*argv, Contains("--etcd-ca=other"));
  Put("state = \"etcd://a,c/jobs\"\n");
  EXPECT_THAT(std::string(kept.ReadAgain().status().message()), HasSubstr("etcd://a,b/jobs stays"));
}

TEST_F(ReloadableConfigTest, ListenDoesNotCountWhereTheServiceManagerListens) {
  ReloadableConfig kept = Begin(state_, {}, Endpoint{"::", 3});
  Put(state_ + "listen = \"127.0.0.1:9\"\n");
  const auto argv = kept.ReadAgain();
  ASSERT_TRUE(argv.ok()) << argv.status();
  EXPECT_EQ((*argv)[1], "--listen=[::]:3");
}

// "The file's new token was not there, and the daemon that ran was replaced by none."
TEST_F(ReloadableConfigTest, TokenThatIsNotThereIsToldBeforeADaemonIsStartedWithIt) {
  ReloadableConfig kept = Begin(state_ + "insecure = true\n");
  EXPECT_TRUE(kept.Check().ok());
  Put(state_ + "token-file = \"" + directory_.Path("none") + "\"\n");
  ASSERT_TRUE(kept.ReadAgain().ok());
  EXPECT_THAT(std::string(kept.Check().message()), HasSubstr(directory_.Path("none")));
}

TEST_F(ReloadableConfigTest, MistakeIsOneSentenceWithoutTheProgramsName) {
  ReloadableConfig kept = Begin(state_);
  Put("lisen = 1\n");
  const auto argv = kept.ReadAgain();
  EXPECT_THAT(std::string(argv.status().message()),
              testing::StartsWith(file_ + " sets 'lisen', which is not a setting"));
  EXPECT_THAT(std::string(argv.status().message()), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace muster::rendezvous
