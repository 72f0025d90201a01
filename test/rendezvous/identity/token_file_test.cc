#include "rendezvous/identity/token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "test/support/temp_dir.h"

namespace muster::rendezvous {
namespace {

namespace fs = std::filesystem;

// A folder that other users can reach, unlike the folder of Bazel's tests.
struct OpenFolder {
  OpenFolder() {
    if (mkdtemp(folder.data()) == nullptr || chmod(folder.c_str(), 0755) != 0) std::abort();
    path = folder + "/token";
  }
  ~OpenFolder() { fs::remove_all(folder); }

  std::string folder = "/tmp/muster_test_XXXXXX";
  std::string path;
};

class TokenFileTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.Path(name); }

  // Why the file cannot be read.
  std::string Problem(const std::string& name) const {
    const auto token = ReadTokenFile(Path(name));
    return token.ok() ? "none" : std::string(token.status().message());
  }

  const test::TempDir dir_;
};

TEST_F(TokenFileTest, IsMadeForItsOwnerAlone) {
  const Token token = Token::Random();
  ASSERT_TRUE(WriteTokenFile(Path("a/b/token"), token).ok());
  struct stat file = {}, folder = {};
  ASSERT_EQ(stat(Path("a/b/token").c_str(), &file), 0);
  ASSERT_EQ(stat(Path("a/b").c_str(), &folder), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  EXPECT_EQ(folder.st_mode & 0777, 0700u);
  const auto read = ReadTokenFile(Path("a/b/token"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, token);
}

TEST_F(TokenFileTest, OneThatIsThereIsNeverChangedAndNothingIsLeftBehind) {
  const Token token = Token::Random();
  ASSERT_TRUE(WriteTokenFile(Path("token"), token).ok());
  const absl::Status again = WriteTokenFile(Path("token"), Token::Random());
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*ReadTokenFile(Path("token")), token);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()), 1);
}

TEST_F(TokenFileTest, ADanglingLinkIsNotFollowedWhenOneIsMade) {
  fs::create_symlink("elsewhere", Path("token"));
  EXPECT_EQ(WriteTokenFile(Path("token"), Token::Random()).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_FALSE(fs::exists(Path("elsewhere")));
}

TEST_F(TokenFileTest, OneThatIsMissingIsNotFound) {
  const auto token = ReadTokenFile(Path("token"));
  EXPECT_EQ(token.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(token.status().message(),
            "read token file " + Path("token") + ": No such file or directory");
}

TEST_F(TokenFileTest, OneThatOthersCanReadOrChangeIsRefused) {
  const std::string text = Token::Random().Text();
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0644, 0666}) {
    dir_.Write("token", text, mode);
    EXPECT_TRUE(absl::StrContains(
        Problem("token"), "other users can read or change it; if none has, run `chmod 600 "))
        << mode << ": " << Problem("token");
  }
  dir_.Write("token", text, 0400);
  EXPECT_EQ(Problem("token"), "none");
}

TEST_F(TokenFileTest, AnotherUsersIsRefused) {
  dir_.Write("token", Token::Random().Text(), 0600);
  if (chown(Path("token").c_str(), 12345, 12345) != 0) {
    GTEST_SKIP() << "only root can give a file away, and not in a sandbox";
  }
  EXPECT_TRUE(absl::StrContains(Problem("token"), "it is owned by user id 12345"))
      << Problem("token");
}

// A pod with runAsUser and fsGroup could not read the token that Kubernetes had mounted for it.
TEST_F(TokenFileTest, RootMayLendItsFileToAGroup) {
  constexpr gid_t kGroup = 12346;
  const OpenFolder shared;
  std::ofstream(shared.path) << Token::Random().Text();
  if (chown(shared.path.c_str(), 0, kGroup) != 0) {
    GTEST_SKIP() << "only root can give a file away, and not in a sandbox";
  }
  // As user 12345: in that group, and in another.
  const auto can_read = [&](mode_t mode, gid_t group) {
    EXPECT_EQ(chmod(shared.path.c_str(), mode), 0);
    EXPECT_EQ(setegid(group) | seteuid(12345), 0);
    const bool ok = ReadTokenFile(shared.path).ok();
    EXPECT_EQ(seteuid(0) | setegid(0), 0);
    return ok;
  };
  EXPECT_TRUE(can_read(0440, kGroup));
  EXPECT_FALSE(can_read(0460, kGroup));
  EXPECT_FALSE(can_read(0444, kGroup));
  EXPECT_FALSE(can_read(0444, 12347));
  EXPECT_FALSE(can_read(0440, 12347));
}

TEST_F(TokenFileTest, WhatIsNoRegularFileIsRefusedWithoutWaiting) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_TRUE(absl::StrContains(Problem("fifo"), "it is not a regular file")) << Problem("fifo");
  ASSERT_EQ(mkdir(Path("folder").c_str(), 0700), 0);
  EXPECT_TRUE(absl::StrContains(Problem("folder"), "it is not a regular file"))
      << Problem("folder");
}

TEST_F(TokenFileTest, ALinkToOneIsFollowedAsKubernetesMountsSecrets) {
  dir_.Write("data", Token::Random().Text(), 0400);
  fs::create_symlink("data", Path("token"));
  EXPECT_EQ(Problem("token"), "none");
}

TEST_F(TokenFileTest, WhatHoldsNoTokenIsRefusedAndNotShown) {
  for (const std::string& text :
       {std::string(), std::string("hunter2\n"), std::string(1 << 20, 'a')}) {
    dir_.Write("token", text, 0600);
    EXPECT_EQ(Problem("token"), "read token file " + Path("token") +
                                    ": it holds no token, which is 64 hexadecimal digits; make one "
                                    "with `muster token new`");
  }
}

TEST_F(TokenFileTest, ADescriptorIsReadToItsEndAndClosed) {
  const Token token = Token::Random();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string text = token.Text();
  std::thread writer([&] {
    // In two parts, as may happen with a pipe.
    EXPECT_EQ(write(ends[1], text.data(), 10), 10);
    EXPECT_EQ(write(ends[1], text.data() + 10, text.size() - 10),
              static_cast<ssize_t>(text.size() - 10));
    close(ends[1]);
  });
  const auto read = ReadTokenFd(ends[0]);
  writer.join();
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, token);
  EXPECT_EQ(fcntl(ends[0], F_GETFD), -1);
  EXPECT_EQ(ReadTokenFd(1000000).status().message(),
            "read token file descriptor 1000000: Bad file descriptor");
}

TEST_F(TokenFileTest, ManyThatMakeItAtOnceHaveTheSameToken) {
  std::vector<std::string> found(16);
  std::vector<std::thread> makers;
  for (std::string& text : found) {
    makers.emplace_back([&text, path = Path("muster/token")] {
      const auto token = ReadOrMakeTokenFile(path);
      text = token.ok() ? token->Text() : std::string(token.status().message());
    });
  }
  for (std::thread& maker : makers) maker.join();
  EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), 1u) << found.front();
  EXPECT_TRUE(Token::Parse(found.front()).ok()) << found.front();
  EXPECT_EQ(std::distance(fs::directory_iterator(Path("muster")), fs::directory_iterator()), 1);
}

TEST_F(TokenFileTest, WhereNoneCanBeMadeTheFileIsNamed) {
  dir_.Write("file", "x");
  const auto token = ReadOrMakeTokenFile(Path("file/token"));
  EXPECT_EQ(token.status().message(),
            "read token file " + Path("file/token") + ": Not a directory");
}

TEST_F(TokenFileTest, TheFormerTokenHasALineOfItsOwn) {
  const TokenFile file{.token = Token::Random(),
                       .former = {{Token::Random(), absl::FromUnixSeconds(1'800'000'000)}}};
  const std::string text = file.Text();
  EXPECT_TRUE(absl::EndsWith(text, " until 2027-01-15T08:00:00Z\n")) << text;
  const auto read = TokenFile::Parse(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->token, file.token);
  EXPECT_EQ(read->former, file.former);
  // A truncated or modified text is never accepted as a lone token.
  for (std::size_t size = 66; size + 1 < text.size(); ++size) {
    EXPECT_FALSE(TokenFile::Parse(text.substr(0, size)).ok()) << size;
  }
}

TEST_F(TokenFileTest, AChangeLeavesTheFileForItsOwnerAloneAndALinkALink) {
  const Token token = Token::Random();
  ASSERT_TRUE(WriteTokenFile(Path("real"), token).ok());
  fs::create_symlink("real", Path("link"));
  const absl::Time until = absl::Now() + absl::Hours(2);
  ASSERT_TRUE(RotateTokenFile(Path("link"), until).ok());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  struct stat file = {};
  ASSERT_EQ(stat(Path("real").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  const auto tokens = ReadTokens(Path("link"));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_NE(tokens->token, token);
  ASSERT_EQ(tokens->former.size(), 1u);
  EXPECT_EQ(tokens->former[0].token, token);
  EXPECT_LE(absl::AbsDuration(tokens->former[0].until - until), absl::Seconds(1));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()), 2);
  EXPECT_EQ(RotateTokenFile(Path("none"), until).status().code(), absl::StatusCode::kNotFound);
}

// "We rotated twice on one day, and nodes with the copy from the morning were turned away, though
// they had until the next day."
TEST_F(TokenFileTest, AFormerTokenKeepsItsTimeWhateverComesAfterIt) {
  const Token first = Token::Random();
  ASSERT_TRUE(WriteTokenFile(Path("token"), first).ok());
  const absl::Time now = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()));
  const auto second = RotateTokenFile(Path("token"), now + absl::Hours(24));
  ASSERT_TRUE(second.ok()) << second.status();
  const auto third = RotateTokenFile(Path("token"), now + absl::Hours(1));
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(third->former, (std::vector<FormerToken>{{second->token, now + absl::Hours(1)},
                                                     {first, now + absl::Hours(24)}}));
  const auto read = ReadTokens(Path("token"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->former, third->former);
  EXPECT_EQ(read->token, third->token);

  // If a token is known to be compromised, it may be any of them.
  EXPECT_TRUE(RotateTokenFile(Path("token"), now)->former.empty());
  EXPECT_TRUE(ReadTokens(Path("token"))->former.empty());
}

TEST_F(TokenFileTest, FormerTokensWhoseTimeIsOverMakeRoomAndThereIsALimit) {
  ASSERT_TRUE(WriteTokenFile(Path("token"), Token::Random()).ok());
  const absl::Time until = absl::Now() + absl::Hours(24);
  for (std::size_t i = 0; i < TokenFile::kMostFormer; ++i) {
    ASSERT_TRUE(RotateTokenFile(Path("token"), until).ok()) << i;
  }
  const auto before = ReadTokens(Path("token"));
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_EQ(before->former.size(), TokenFile::kMostFormer);
  const auto refused = RotateTokenFile(Path("token"), until);
  EXPECT_EQ(refused.status().message(),
            "replace the token in " + Path("token") +
                ": it has 16 old tokens that are still accepted, which is the limit; wait until "
                "one expires, or end them all with --old-token-ttl=0");
  EXPECT_EQ(ReadTokens(Path("token"))->token, before->token);
}

// Six concurrent rotations all reported success, and one token was accepted by no one.
TEST_F(TokenFileTest, ManyThatReplaceItAtOnceTakeTurns) {
  ASSERT_TRUE(WriteTokenFile(Path("token"), Token::Random()).ok());
  const absl::Time until = absl::Now() + absl::Hours(1);
  std::mutex mutex;
  std::set<std::string> made = {ReadTokenFile(Path("token"))->Text()};
  std::vector<std::thread> all;
  for (int i = 0; i < 6; ++i) {
    all.emplace_back([&] {
      const auto after = RotateTokenFile(Path("token"), until);
      ASSERT_TRUE(after.ok()) << after.status();
      const std::lock_guard lock(mutex);
      made.insert(after->token.Text());
    });
  }
  for (std::thread& each : all) each.join();
  const auto tokens = ReadTokens(Path("token"));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  std::set<std::string> taken = {tokens->token.Text()};
  for (const FormerToken& former : tokens->former) taken.insert(former.token.Text());
  EXPECT_EQ(taken, made);
  EXPECT_EQ(taken.size(), 7u);
}

}  // namespace
}  // namespace muster::rendezvous
