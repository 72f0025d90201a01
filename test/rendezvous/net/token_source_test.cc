#include "rendezvous/net/token_source.h"

#include <linux/magic.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/identity/token_file.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const Endpoint kLoopback{"127.0.0.1", 29400};
const Endpoint kNetwork{"node0", 29400};

class TokenSourceTest : public ::testing::Test {
 protected:
  using Variables = std::map<std::string, std::string>;

  static absl::StatusOr<TokenSource> Complete(const TokenSource& given,
                                              const Variables& variables) {
    return CompleteTokenSource(given, [&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? "" : found->second;
    });
  }

  static std::string Problem(const TokenSource& given, const Variables& variables) {
    const auto source = Complete(given, variables);
    return source.ok() ? "none" : std::string(source.status().message());
  }

  std::string MakeFile(const std::string& name) const {
    EXPECT_TRUE(WriteTokenFile(dir_.Path(name), Token::Random()).ok());
    return dir_.Path(name);
  }

  const test::TempDir dir_;
};

TEST_F(TokenSourceTest, TheUsersOwnFileIsWhereXdgSays) {
  const auto own = [](const Variables& variables) { return Complete({}, variables)->own_file; };
  EXPECT_EQ(own({{"XDG_CONFIG_HOME", "/x"}, {"HOME", "/h"}}), "/x/muster/token");
  EXPECT_EQ(own({{"HOME", "/h"}}), "/h/.config/muster/token");
  EXPECT_EQ(own({{"XDG_CONFIG_HOME", "relative"}, {"HOME", "/h"}}), "/h/.config/muster/token");
  EXPECT_EQ(own({{"HOME", "relative"}}), "");
  EXPECT_EQ(own({}), "");
}

TEST_F(TokenSourceTest, WhatAFlagSaysCountsMoreThanAnyVariable) {
  const Variables both = {{"MUSTER_TOKEN_FILE", "/v"}, {"MUSTER_INSECURE", "1"}};
  EXPECT_EQ(Complete({.file = "/f"}, both)->file, "/f");
  EXPECT_FALSE(Complete({.file = "/f"}, both)->insecure);
  EXPECT_TRUE(Complete({.insecure = true}, both)->insecure);
  EXPECT_EQ(Complete({.insecure = true}, both)->file, "");
  EXPECT_EQ(Complete({.fd = 7}, both)->fd, 7);
  EXPECT_EQ(Complete({}, {{"MUSTER_TOKEN_FILE", "/v"}})->file, "/v");
  EXPECT_TRUE(Complete({}, {{"MUSTER_INSECURE", "1"}})->insecure);
  EXPECT_FALSE(Complete({}, {{"MUSTER_INSECURE", "0"}})->insecure);
}

TEST_F(TokenSourceTest, WhatContradictsItselfIsRefused) {
  EXPECT_EQ(Problem({.file = "/f", .insecure = true}, {}),
            "--insecure goes without a token, and --token-file names one; drop one of them");
  EXPECT_EQ(Problem({.fd = 5, .insecure = true}, {}),
            "--insecure goes without a token, and --token-fd names one; drop one of them");
  EXPECT_EQ(Problem({.file = "/f", .fd = 5}, {}),
            "--token-file and --token-fd both name a token; drop one of them");
  EXPECT_EQ(Problem({}, {{"MUSTER_TOKEN_FILE", "/v"}, {"MUSTER_INSECURE", "1"}}),
            "MUSTER_INSECURE=1 goes without a token, and MUSTER_TOKEN_FILE names one; unset one of "
            "them");
  EXPECT_EQ(Problem({}, {{"MUSTER_INSECURE", "yes"}}),
            "environment variable MUSTER_INSECURE=yes is neither 1 nor 0");
}

TEST_F(TokenSourceTest, ADescriptorIsOneThatIsOpenAndNotStandardInputOrOutput) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(*ReadTokenFdNumber(std::to_string(ends[0])), ends[0]);
  close(ends[0]);
  close(ends[1]);
  for (const std::string& text : {std::to_string(ends[0]), std::string("0"), std::string("2"),
                                  std::string("-1"), std::string("x"), std::string()}) {
    EXPECT_FALSE(ReadTokenFdNumber(text).ok()) << text;
  }
}

TEST_F(TokenSourceTest, AFileThatIsNamedIsReadAndNeverMade) {
  const std::string file = MakeFile("given");
  EXPECT_TRUE((*FindKeyring({.file = file}, kNetwork)).has_value());
  EXPECT_THAT(std::string(FindKeyring({.file = dir_.Path("none")}, kLoopback).status().message()),
              StartsWith("read token file " + dir_.Path("none")));
  EXPECT_FALSE(std::filesystem::exists(dir_.Path("none")));
}

// The name of what follows from the token.
std::string AuthorityAt(const TokenSource& source, const Endpoint& endpoint) {
  const auto keyring = FindKeyring(source, endpoint);
  EXPECT_TRUE(keyring.ok()) << keyring.status();
  return keyring.ok() && *keyring ? (**keyring).Now()->front().authority.name() : "none";
}

TEST_F(TokenSourceTest, OnLoopbackTheUsersOwnIsMadeAtItsFirstUse) {
  const TokenSource source{.own_file = dir_.Path("config/muster/token")};
  const std::string first = AuthorityAt(source, kLoopback);
  EXPECT_EQ(AuthorityAt(source, {"localhost", 1}), first);
  EXPECT_EQ(AuthorityAt(source, kNetwork), first) << "and once it is there it is used elsewhere";
}

TEST_F(TokenSourceTest, OnANetworkOneThatIsMissingIsNotMadeAndTheSentenceSaysWhatToDo) {
  const TokenSource source{.own_file = dir_.Path("muster/token")};
  EXPECT_EQ(FindKeyring(source, kNetwork).status().message(),
            "no token for the rendezvous at node0:29400, which other machines can reach: make one "
            "with `muster token new` and copy " +
                dir_.Path("muster/token") +
                " to every node, or name its file with --token-file; on a network whose every host "
                "and user you trust, --insecure goes without");
  EXPECT_FALSE(std::filesystem::exists(dir_.Path("muster")));
}

TEST_F(TokenSourceTest, WithoutAPlaceForOneTheSentenceSaysSo) {
  EXPECT_THAT(std::string(FindKeyring({}, kLoopback).status().message()),
              HasSubstr("with neither XDG_CONFIG_HOME nor HOME there is no place for one"));
}

TEST_F(TokenSourceTest, WhoWantsNoneGetsNone) {
  MakeFile("muster/token");
  const auto none =
      FindKeyring({.insecure = true, .own_file = dir_.Path("muster/token")}, kNetwork);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
}

TEST_F(TokenSourceTest, FileSystemsThatNodesShareAreKnown) {
  for (const long shared : {NFS_SUPER_MAGIC, CEPH_SUPER_MAGIC, 0x0bd00bd0}) {
    EXPECT_TRUE(IsSharedAmongMachines(shared)) << shared;
  }
  for (const long own : {EXT4_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC, XFS_SUPER_MAGIC}) {
    EXPECT_FALSE(IsSharedAmongMachines(own)) << own;
  }
}

}  // namespace
}  // namespace muster::rendezvous
