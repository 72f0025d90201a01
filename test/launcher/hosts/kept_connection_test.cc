#include "launcher/hosts/kept_connection.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace muster::launcher {
namespace {

using std::chrono::seconds;
using testing::StartsWith;

// With a path that is short enough for a socket's, and without what ssh would replace.
class KeptConnectionTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(name_), nullptr); }
  ~KeptConnectionTest() override { std::filesystem::remove_all(name_); }

  std::string folder() const { return absl::StrCat(name_, "/muster-ssh"); }
  std::optional<KeptConnection> Find(const std::string& name, const std::string& user = "",
                                     seconds time = seconds(60)) const {
    return FindKeptConnection({.name = name, .user = user, .workers = {}}, time,
                              {{"XDG_RUNTIME_DIR", name_}});
  }

  char name_[32] = "/tmp/muster-kept-XXXXXX";
};

TEST_F(KeptConnectionTest, EachHostAndUserHasOneInAFolderThatIsTheUsersAlone) {
  const auto one = Find("node1");
  ASSERT_TRUE(one);
  EXPECT_THAT(one->socket, StartsWith(folder() + "/"));
  EXPECT_EQ(one->time, seconds(60));
  EXPECT_EQ(std::filesystem::status(folder()).permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(Find("node1")->socket, one->socket);
  EXPECT_NE(Find("node2")->socket, one->socket);
  EXPECT_NE(Find("node1", "alice")->socket, one->socket);
}

TEST_F(KeptConnectionTest, IsThereWhereItsSocketIs) {
  const std::string path = Find("node1")->socket;
  EXPECT_FALSE(Find("node1")->is_there);
  const base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(Find("node1")->is_there);
  EXPECT_FALSE(Find("node2")->is_there);
}

TEST_F(KeptConnectionTest, NoneIsKeptForNoTime) {
  EXPECT_FALSE(Find("node1", "", seconds(0)));
  EXPECT_FALSE(std::filesystem::exists(folder()));
}

// "Another user of the login node put a socket where mine would be, and read my token."
TEST_F(KeptConnectionTest, NoneIsKeptInAFolderThatOthersCanWriteTo) {
  ASSERT_EQ(::mkdir(folder().c_str(), 0700), 0);
  ASSERT_EQ(::chmod(folder().c_str(), 0770), 0);
  EXPECT_FALSE(Find("node1"));
}

TEST_F(KeptConnectionTest, NoneIsKeptBehindALink) {
  std::filesystem::create_directory(absl::StrCat(name_, "/elsewhere"));
  std::filesystem::create_directory_symlink(absl::StrCat(name_, "/elsewhere"), folder());
  EXPECT_FALSE(Find("node1"));
}

// They are for ssh, which takes some characters for something else, and a socket's path is short.
TEST_F(KeptConnectionTest, RuntimeFolderThatDoesNotDoIsNotUsed) {
  for (const std::string name : {"with space", "%C", "~", "${HOME}"}) {
    const std::string runtime = absl::StrCat(name_, "/", name);
    ASSERT_EQ(::mkdir(runtime.c_str(), 0700), 0);
    const auto found = FindKeptConnection({.name = "node1", .user = "", .workers = {}}, seconds(1),
                                          {{"XDG_RUNTIME_DIR", runtime}});
    EXPECT_TRUE(!found || !found->socket.starts_with(name_)) << found->socket;
  }
  const std::string runtime = absl::StrCat(name_, "/", std::string(80, 'a'));
  ASSERT_EQ(::mkdir(runtime.c_str(), 0700), 0);
  EXPECT_FALSE(FindKeptConnection({.name = "node1", .user = "", .workers = {}}, seconds(1),
                                  {{"XDG_RUNTIME_DIR", runtime}}));
}

}  // namespace
}  // namespace muster::launcher
