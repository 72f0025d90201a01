#include "rendezvous/net/find_credentials.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/identity/token.h"
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

  static absl::StatusOr<Credentials> Find(const TokenSource& source, const Endpoint& endpoint) {
    return FindCredentials(source, endpoint, Role::kTool);
  }

  // The name of the authority derived from the token.
  static std::string AuthorityAt(const TokenSource& source, const Endpoint& endpoint) {
    const auto credentials = Find(source, endpoint);
    EXPECT_TRUE(credentials.ok()) << credentials.status();
    return credentials.ok() && credentials->keys() ? credentials->keys()->front().authority.name()
                                                   : "none";
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

TEST_F(TokenSourceTest, CertificatesOfASiteTakeThreeFiles) {
  const CertificateFiles all = {"/ca", "/cert", "/key"};
  EXPECT_EQ(Complete({.tls = all}, {{"MUSTER_TOKEN_FILE", "/v"}})->tls, all);
  EXPECT_EQ(Complete({.tls = all}, {{"MUSTER_TOKEN_FILE", "/v"}})->file, "");
  EXPECT_EQ(
      Complete({},
               {{"MUSTER_TLS_CA", "/ca"}, {"MUSTER_TLS_CERT", "/cert"}, {"MUSTER_TLS_KEY", "/key"}})
          ->tls,
      all);
  EXPECT_TRUE(Complete({.file = "/f"}, {{"MUSTER_TLS_CA", "/ca"}})->tls.empty());
  EXPECT_THAT(Problem({.tls = {.ca = "/ca"}}, {}), HasSubstr("take three files"));
  EXPECT_THAT(Problem({}, {{"MUSTER_TLS_KEY", "/key"}}), HasSubstr("give all of them"));
}

TEST_F(TokenSourceTest, WhatContradictsItselfIsRefused) {
  const std::string kWays = " exclude each other; ";
  EXPECT_EQ(Problem({.file = "/f", .insecure = true}, {}),
            "--insecure and --token-file" + kWays + "drop one of them");
  EXPECT_EQ(Problem({.fd = 5, .insecure = true}, {}),
            "--insecure and --token-fd" + kWays + "drop one of them");
  EXPECT_EQ(Problem({.file = "/f", .fd = 5}, {}),
            "--token-file and --token-fd" + kWays + "drop one of them");
  EXPECT_EQ(Problem({}, {{"MUSTER_TOKEN_FILE", "/v"}, {"MUSTER_INSECURE", "1"}}),
            "MUSTER_INSECURE=1 and MUSTER_TOKEN_FILE" + kWays + "unset one of them");
  EXPECT_EQ(Problem({.fd = 5, .tls = {.ca = "/c"}}, {}),
            "--token-fd and --tls-ca, --tls-cert and --tls-key" + kWays + "drop one of them");
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
  EXPECT_TRUE(Find({.file = file}, kNetwork).ok());
  EXPECT_THAT(std::string(Find({.file = dir_.Path("none")}, kLoopback).status().message()),
              StartsWith("read token file " + dir_.Path("none")));
  EXPECT_FALSE(std::filesystem::exists(dir_.Path("none")));
}

TEST_F(TokenSourceTest, OnLoopbackTheUsersOwnIsMadeAtItsFirstUse) {
  const TokenSource source{.own_file = dir_.Path("config/muster/token")};
  const std::string first = AuthorityAt(source, kLoopback);
  EXPECT_EQ(AuthorityAt(source, {"localhost", 1}), first);
  EXPECT_EQ(AuthorityAt(source, kNetwork), first) << "and once it is there it is used elsewhere";
}

TEST_F(TokenSourceTest, OnANetworkOneThatIsMissingIsNotMadeAndTheSentenceSaysWhatToDo) {
  const TokenSource source{.own_file = dir_.Path("muster/token")};
  EXPECT_EQ(Find(source, kNetwork).status().message(),
            "no token for the rendezvous at node0:29400, which other machines can reach: make one "
            "with `muster token new` and copy " +
                dir_.Path("muster/token") +
                " to every node, or name its file with --token-file; on a network where you trust "
                "every host and user, --insecure needs none");
  EXPECT_FALSE(std::filesystem::exists(dir_.Path("muster")));
}

TEST_F(TokenSourceTest, WithoutAPlaceForOneTheSentenceSaysSo) {
  EXPECT_THAT(
      std::string(Find({}, kNetwork).status().message()),
      HasSubstr("with neither XDG_CONFIG_HOME nor HOME set there is no default place for one"));
  // Not even root can create a folder below a file.
  std::ofstream(dir_.Path("file")) << "text";
  const TokenSource nowhere{.place = {.temps = {dir_.Path("file") + "/tmp"}}};
  if (access(("/run/user/" + std::to_string(geteuid())).c_str(), F_OK) == 0) return;
  EXPECT_THAT(std::string(Find(nowhere, kLoopback).status().message()),
              HasSubstr("no token for the rendezvous: none is given, there is no home directory"));
}

// "env -i PATH=$PATH muster run --rdzv-endpoint=localhost:1 failed because it had no token."
TEST_F(TokenSourceTest, OnLoopbackNoHomeIsNeeded) {
  ASSERT_EQ(chmod(dir_.path().c_str(), 01777), 0);
  const std::string own = dir_.Path("muster-" + std::to_string(geteuid()));
  const base::UserPlace place{.temps = {dir_.path()}};
  const std::string file = own + "-0/token";
  const TokenSource homes[] = {{.place = place},
                               {.own_file = "/no/such/home/.config/muster/token", .place = place},
                               {.own_file = "/proc/self/task/token", .place = place}};
  const std::string first = AuthorityAt(homes[0], kLoopback);
  for (const TokenSource& source : homes) {
    EXPECT_EQ(*FindTokenFile(source, kLoopback), file);
    EXPECT_EQ(AuthorityAt(source, {"localhost", 1}), first);
    EXPECT_FALSE(Find(source, kNetwork).ok()) << "where others would need it as well";
  }
  struct stat info = {};
  ASSERT_EQ(stat((own + "-0").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_FALSE(std::filesystem::exists("/no/such/home")) << "no home is made";
}

TEST_F(TokenSourceTest, RuntimeDirectoryComesFirstAndATokenThatIsThereBeforeAnyOther) {
  ASSERT_EQ(chmod(dir_.path().c_str(), 01777), 0);
  std::filesystem::create_directory(dir_.Path("run"));
  TokenSource source{.place = {.temps = {dir_.path()}}};
  const std::string batch_job = *FindTokenFile(source, kLoopback);
  source.place.runtime = dir_.Path("run");
  EXPECT_EQ(*FindTokenFile(source, kLoopback), batch_job) << "as a batch job lacks the variable";
  std::filesystem::remove(batch_job);
  EXPECT_EQ(*FindTokenFile(source, kLoopback), dir_.Path("run/muster/token"));
  source.place.chosen = dir_.Path("chosen");
  EXPECT_EQ(*FindTokenFile(source, kLoopback), dir_.Path("chosen/token"));
}

// A file that another user has put there must not be used.
TEST_F(TokenSourceTest, FolderThatAnotherUserHasTakenIsPassedOver) {
  ASSERT_EQ(chmod(dir_.path().c_str(), 01777), 0);
  const std::string own = dir_.Path("muster-" + std::to_string(geteuid()));
  ASSERT_EQ(mkdir((own + "-0").c_str(), 0777), 0);
  if (geteuid() != 0 || lchown((own + "-0").c_str(), 12345, 12345) != 0) {
    GTEST_SKIP() << "needs root";
  }
  const TokenSource source{.place = {.temps = {dir_.path()}}};
  const auto file = FindTokenFile(source, kLoopback);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_NE(*file, own + "-0/token");
  EXPECT_EQ(*FindTokenFile(source, kLoopback), *file);
  std::filesystem::remove_all(own + "-0");
  std::filesystem::remove_all(std::filesystem::path(*file).parent_path());
  ASSERT_EQ(symlink("/etc", (own + "-0").c_str()), 0);
  ASSERT_EQ(lchown((own + "-0").c_str(), 12345, 12345), 0);
  const auto beside_link = FindTokenFile(source, kLoopback);
  ASSERT_TRUE(beside_link.ok()) << beside_link.status();
  EXPECT_NE(*beside_link, own + "-0/token");
}

TEST_F(TokenSourceTest, TokenOfTheHomeThatCannotBeUsedIsTheUsersToMend) {
  const std::string file = MakeFile("a/muster/token");
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_FALSE(Find({.own_file = file, .place = {.temps = {dir_.path()}}}, kLoopback).ok());
}

TEST_F(TokenSourceTest, WhoWantsNoneGetsNone) {
  MakeFile("muster/token");
  const auto none = Find({.insecure = true, .own_file = dir_.Path("muster/token")}, kNetwork);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->secure());
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
