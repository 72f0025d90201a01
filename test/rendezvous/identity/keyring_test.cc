// Which tokens a keyring accepts as their files are added, changed and removed. Checked with
// certificates issued with the tokens, as a daemon does.
#include "rendezvous/identity/keyring.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "rendezvous/identity/token.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class KeyringTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.Path(name); }

  Token Make(const std::string& name) {
    const Token token = Token::Random();
    EXPECT_TRUE(WriteTokenFile(Path(name), token).ok());
    return token;
  }

  // "TENANT ROLE" of an agent that has this token, or "nobody".
  static std::string Who(const Keyring& keyring, const Token& token, Role role = Role::kAgent) {
    const Identity identity = Authority(token).Issue(role, absl::Now());
    const auto found = Keyring::Identify(*keyring.Now(), identity.certificate);
    if (!found) return "nobody";
    const std::string tenant = found->tenant.empty() ? "-" : found->tenant;
    return absl::StrCat(tenant, " ", NameOf(found->role));
  }

  Keyring::Trouble Trouble() {
    return [this](const std::string& sentence) { troubles_.push_back(sentence); };
  }

  const test::TempDir dir_;
  std::vector<std::string> troubles_;
};

// "Anyone on the machine could keep the daemon busy with guesses at --http."
TEST_F(KeyringTest, TokenIsKnownAgainByItsFingerprintAlone) {
  const Token token = Token::Random();
  const Keys keys = Keyring::Of(token).Now();
  EXPECT_EQ(Keyring::Identify(*keys, token), (Principal{"", Role::kTool}));
  EXPECT_EQ(Keyring::Identify(*keys, token.ForMetrics()), (Principal{"", Role::kMetrics}));
  EXPECT_EQ(Keyring::Identify(*keys, Token::Random()), std::nullopt);
  EXPECT_EQ(Keyring::Identify(*keys, token.ForMetrics().ForMetrics()), std::nullopt);
  EXPECT_EQ(token.Fingerprint(), Token(token).Fingerprint());
  EXPECT_NE(token.Fingerprint(), token.bytes());
  EXPECT_NE(token.Fingerprint(), token.ForMetrics().bytes());
}

TEST_F(KeyringTest, OneTokenGivesTheRoleThatItsHolderClaims) {
  const Token token = Token::Random();
  const Keyring keyring = Keyring::Of(token);
  EXPECT_EQ(Who(keyring, token), "- agent");
  EXPECT_EQ(Who(keyring, token, Role::kTool), "- tool");
  EXPECT_EQ(Who(keyring, Token::Random()), "nobody");
  EXPECT_EQ(Who(keyring, token, Role::kDaemon), "nobody") << "a daemon is nobody's client";
  EXPECT_EQ(keyring.Now(), keyring.Now()) << "the same object until something changes";
  EXPECT_EQ(keyring.Now()->front().authority.name(), Authority(token).name());
}

TEST_F(KeyringTest, AMetricsTokenGivesThatRoleWhateverItsHolderClaims) {
  const Token token = Token::Random();
  const Keyring keyring = Keyring::Of(token);
  for (const Role role : {Role::kAgent, Role::kTool, Role::kMetrics}) {
    EXPECT_EQ(Who(keyring, token.ForMetrics(), role), "- metrics");
  }
  EXPECT_EQ(Who(keyring, token.ForMetrics().ForMetrics()), "nobody");
}

TEST_F(KeyringTest, WhatIsNoCertificateIsNobodys) {
  const Keyring keyring = Keyring::Of(Token::Random());
  for (const char* text :
       {"", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"}) {
    EXPECT_EQ(Keyring::Identify(*keyring.Now(), text), std::nullopt);
  }
}

TEST_F(KeyringTest, AFormerTokenIsTakenForAsLongAsTheFileSays) {
  const Token former = Make("token");
  const auto keyring = Keyring::OfFile(Path("token"), Trouble());
  ASSERT_TRUE(keyring.ok()) << keyring.status();
  ASSERT_TRUE(RotateTokenFile(Path("token"), absl::Now() + absl::Hours(1)).ok());
  const Token current = *ReadTokenFile(Path("token"));
  EXPECT_NE(current, former);
  EXPECT_EQ(Who(*keyring, current), "- agent");
  EXPECT_EQ(Who(*keyring, former), "- agent");
  EXPECT_EQ(Who(*keyring, former.ForMetrics()), "- metrics");
  EXPECT_EQ(keyring->Now()->front().authority.name(), Authority(current).name())
      << "one proves oneself with the new one";

  ASSERT_TRUE(RotateTokenFile(Path("token"), absl::Now() - absl::Hours(1)).ok());
  EXPECT_EQ(Who(*keyring, former), "nobody");
  EXPECT_EQ(Who(*keyring, current), "nobody") << "its time was over when it was replaced";
  EXPECT_EQ(Who(*keyring, *ReadTokenFile(Path("token"))), "- agent");
  EXPECT_THAT(troubles_, IsEmpty());
}

TEST_F(KeyringTest, AFileThatGoesOrIsDamagedCountsAsBeforeAndIsToldOnce) {
  const Token token = Make("token");
  const auto keyring = Keyring::OfFile(Path("token"), Trouble());
  ASSERT_TRUE(keyring.ok());
  std::filesystem::remove(Path("token"));
  EXPECT_EQ(Who(*keyring, token), "- agent");
  EXPECT_EQ(Who(*keyring, token), "- agent");
  EXPECT_THAT(troubles_, ElementsAre(HasSubstr("read token file " + Path("token"))));
  const Token next = Make("token");
  EXPECT_EQ(Who(*keyring, next), "- agent");
  EXPECT_EQ(Who(*keyring, token), "nobody");
  EXPECT_EQ(troubles_.size(), 1u);
}

TEST_F(KeyringTest, EachFileOfADirectoryIsATenantsAndTheyComeAndGo) {
  const Token alice = Make("tokens/alice"), bob = Make("tokens/bob-2");
  Make("tokens/.hidden");
  Make("tokens/alice.bak");
  std::filesystem::create_directory(Path("tokens/folder"));
  const auto keyring = Keyring::OfDirectory(Path("tokens"), Trouble());
  ASSERT_TRUE(keyring.ok()) << keyring.status();
  EXPECT_EQ(Who(*keyring, alice), "alice agent");
  EXPECT_EQ(Who(*keyring, bob), "bob-2 agent");
  EXPECT_EQ(keyring->Now()->size(), 4u);

  const Token carol = Make("tokens/carol");
  EXPECT_EQ(Who(*keyring, carol), "carol agent");
  std::filesystem::remove(Path("tokens/alice"));
  EXPECT_EQ(Who(*keyring, alice), "nobody");
  std::filesystem::remove(Path("tokens/bob-2"));
  std::filesystem::remove(Path("tokens/carol"));
  EXPECT_EQ(Who(*keyring, carol), "nobody") << "the last one goes as the others do";
  EXPECT_TRUE(keyring->Known()->empty());
  EXPECT_THAT(troubles_, IsEmpty());
}

TEST_F(KeyringTest, ATenantWhoTakesAnothersTokenIsRefused) {
  const Token alice = Make("tokens/alice");
  const auto keyring = Keyring::OfDirectory(Path("tokens"), Trouble());
  ASSERT_TRUE(keyring.ok());
  ASSERT_TRUE(WriteTokenFile(Path("tokens/mallory"), alice).ok());
  EXPECT_EQ(Who(*keyring, alice), "alice agent");
  EXPECT_THAT(troubles_,
              ElementsAre(HasSubstr("'mallory' has the same token as another tenant, so the two")));
}

// An empty file, from when the disk was full, and a copy of another one kept the daemon from
// starting after a reboot, though it had run with both for weeks.
TEST_F(KeyringTest, AFileThatCannotBeUsedLeavesItsTenantOutAtTheStart) {
  const Token alice = Make("tokens/alice");
  ASSERT_TRUE(WriteTokenFile(Path("tokens/mallory"), alice).ok());
  std::ofstream(Path("tokens/empty")).flush();
  chmod(Path("tokens/empty").c_str(), 0600);
  const Token open = Make("tokens/open");
  chmod(Path("tokens/open").c_str(), 0644);
  const auto keyring = Keyring::OfDirectory(Path("tokens"), Trouble());
  ASSERT_TRUE(keyring.ok()) << keyring.status();
  EXPECT_EQ(Who(*keyring, alice), "alice agent");
  EXPECT_EQ(Who(*keyring, open), "nobody");
  EXPECT_EQ(keyring->Now(), keyring->Now());
  EXPECT_THAT(troubles_,
              testing::UnorderedElementsAre(HasSubstr("tokens/empty: it holds no token"),
                                            HasSubstr("tokens/open: other users can read"),
                                            HasSubstr("'mallory' has the same token as another")));
  chmod(Path("tokens/open").c_str(), 0600);
  EXPECT_EQ(Who(*keyring, open), "open agent");
}

TEST_F(KeyringTest, TenantsBeyondTheLimitAreLeftOutAndThoseWhoAreThereStay) {
  const Token bob = Make("tokens/bob"), carol = Make("tokens/carol");
  const auto keyring = Keyring::OfDirectory(Path("tokens"), Trouble(), 2);
  ASSERT_TRUE(keyring.ok()) << keyring.status();
  const Token alice = Make("tokens/alice");
  EXPECT_EQ(Who(*keyring, alice), "nobody");
  EXPECT_EQ(Who(*keyring, bob), "bob agent");
  EXPECT_EQ(Who(*keyring, carol), "carol agent");
  EXPECT_THAT(troubles_, ElementsAre(HasSubstr("'alice' is left out, as there are 2 tenants, which "
                                               "is the limit")));
  std::filesystem::remove(Path("tokens/bob"));
  EXPECT_EQ(Who(*keyring, alice), "alice agent");
}

// Finding the owner of a certificate took longer with each tenant: 68 ms with the 100th.
TEST_F(KeyringTest, AmongManyEachIsKnown) {
  std::vector<Token> tokens;
  for (int i = 0; i < 100; ++i) tokens.push_back(Make(absl::StrCat("tokens/t", i)));
  const auto keyring = Keyring::OfDirectory(Path("tokens"), Trouble());
  ASSERT_TRUE(keyring.ok()) << keyring.status();
  const Keys keys = keyring->Now();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Who(*keyring, tokens[i]), absl::StrCat("t", i, " agent"));
    EXPECT_EQ(Who(*keyring, tokens[i].ForMetrics()), absl::StrCat("t", i, " metrics"));
    EXPECT_EQ(Keyring::Identify(*keys, tokens[i]), (Principal{absl::StrCat("t", i), Role::kTool}));
  }
  // From another authority that uses the name of one.
  EXPECT_EQ(Who(*keyring, Token::Random()), "nobody");
  EXPECT_EQ(Keyring::Identify(*keys, Token::Random()), std::nullopt);
}

// The check at each connection looks at few files, and still misses no change.
TEST_F(KeyringTest, WhatIsAskedForOneTenantKnowsOfAllThatComeAndGo) {
  const Token alice = Make("tokens/alice"), bob = Make("tokens/bob");
  const auto keyring = Keyring::OfDirectory(Path("tokens"), Trouble());
  ASSERT_TRUE(keyring.ok()) << keyring.status();
  const auto knows = [&](const Keys& keys, const Token& token) {
    return Keyring::Identify(*keys, token).has_value();
  };
  EXPECT_EQ(keyring->NowOf("alice"), keyring->NowOf("alice"));
  std::filesystem::remove(Path("tokens/bob"));
  EXPECT_FALSE(knows(keyring->NowOf("alice"), bob));
  EXPECT_TRUE(knows(keyring->NowOf("bob"), alice));
  const Token next = RotateTokenFile(Path("tokens/alice"), absl::Now() - absl::Hours(1))->token;
  EXPECT_FALSE(knows(keyring->NowOf("alice"), alice));
  EXPECT_TRUE(knows(keyring->NowOf("alice"), next));
}

// An administrator removed the token of a user who had left, and it was still accepted, as another
// tenant's file could not be read at that time; a new tenant was not admitted.
TEST_F(KeyringTest, AFileThatCannotBeUsedHoldsUpNoOtherTenant) {
  const Token alice = Make("tokens/alice"), mallory = Make("tokens/mallory"),
              zoe = Make("tokens/zoe");
  const auto keyring = Keyring::OfDirectory(Path("tokens"), Trouble());
  ASSERT_TRUE(keyring.ok()) << keyring.status();
  chmod(Path("tokens/alice").c_str(), 0644);
  std::filesystem::remove(Path("tokens/mallory"));
  ASSERT_TRUE(RotateTokenFile(Path("tokens/zoe"), absl::Now() - absl::Hours(1)).ok());
  const Token bob = Make("tokens/bob");
  EXPECT_EQ(Who(*keyring, mallory), "nobody");
  EXPECT_EQ(Who(*keyring, bob), "bob agent");
  EXPECT_EQ(Who(*keyring, zoe), "nobody");
  EXPECT_EQ(Who(*keyring, alice), "alice agent") << "what was known of it goes on counting";
  EXPECT_EQ(keyring->Now(), keyring->Now());
  EXPECT_THAT(troubles_, ElementsAre(HasSubstr("tokens/alice: other users can read")));

  std::filesystem::remove(Path("tokens/alice"));
  EXPECT_EQ(Who(*keyring, alice), "nobody");
}

TEST_F(KeyringTest, WhoHadATokenFirstKeepsItWhateverOthersCopy) {
  const Token bob = Make("tokens/bob"), carol = Make("tokens/carol");
  const auto keyring = Keyring::OfDirectory(Path("tokens"), Trouble());
  ASSERT_TRUE(keyring.ok()) << keyring.status();
  ASSERT_TRUE(WriteTokenFile(Path("tokens/alice"), bob).ok());
  std::filesystem::remove(Path("tokens/carol"));
  ASSERT_TRUE(WriteTokenFile(Path("tokens/carol"), bob).ok());
  EXPECT_EQ(Who(*keyring, bob), "bob agent");
  EXPECT_EQ(Who(*keyring, carol), "carol agent") << "her file cannot be used";
  EXPECT_THAT(troubles_, ElementsAre(HasSubstr("'alice' has the same token as another tenant"),
                                     HasSubstr("'carol' has the same token as another tenant")));

  // The file was meant to be renamed.
  std::filesystem::remove(Path("tokens/bob"));
  std::filesystem::remove(Path("tokens/carol"));
  EXPECT_EQ(Who(*keyring, bob), "alice agent");
}

TEST_F(KeyringTest, ADirectoryThatOthersCanChangeOrWithoutTokensIsRefused) {
  EXPECT_THAT(std::string(Keyring::OfDirectory(Path("none")).status().message()),
              HasSubstr("read tokens in " + Path("none")));
  std::filesystem::create_directory(Path("empty"));
  EXPECT_THAT(std::string(Keyring::OfDirectory(Path("empty")).status().message()),
              HasSubstr("there is none; make one for each tenant"));
  Make("open/alice");
  chmod(Path("open").c_str(), 0777);
  EXPECT_THAT(std::string(Keyring::OfDirectory(Path("open")).status().message()),
              HasSubstr("other users can write to it"));
  Make("damaged/alice");
  std::ofstream(Path("damaged/alice")) << "no token";
  EXPECT_THAT(std::string(Keyring::OfDirectory(Path("damaged")).status().message()),
              HasSubstr("holds no token"));
}

}  // namespace
}  // namespace muster::rendezvous
