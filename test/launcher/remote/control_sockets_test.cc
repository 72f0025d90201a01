#include "launcher/remote/link_command.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace muster::launcher {
namespace {

using std::chrono::seconds;
using testing::StartsWith;

// With a path short enough for sockets, and without characters that ssh expands.
class ControlSocketsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(name_), nullptr); }
  ~ControlSocketsTest() override { std::filesystem::remove_all(name_); }

  std::string folder() const { return absl::StrCat(name_, "/muster-ssh"); }
  std::optional<KeptConnections> Find(std::chrono::milliseconds time = seconds(60)) const {
    return FindKeptConnections(time, {{"XDG_RUNTIME_DIR", name_}});
  }
  // Whether a process uses the same connections after `change`.
  bool IsShared(const std::function<bool()>& change) const {
    const std::string here = Find()->prefix;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(!change() ? 2 : Find()->prefix == here ? 0 : 1);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_NE(status, 2 << 8) << "it cannot be done here";
    return status == 0;
  }

  char name_[32] = "/tmp/muster-kept-XXXXXX";
};

TEST_F(ControlSocketsTest, AreInAFolderThatIsTheUsersAlone) {
  const auto kept = Find();
  ASSERT_TRUE(kept);
  EXPECT_THAT(kept->prefix, StartsWith(folder() + "/"));
  EXPECT_EQ(kept->time, seconds(60));
  EXPECT_EQ(std::filesystem::status(folder()).permissions(), std::filesystem::perms::owner_all);
}

// "A batch job of mine ended, and with it the job that I had started by hand."
TEST_F(ControlSocketsTest, AreSharedByThoseThatEndTogetherAlone) {
  EXPECT_TRUE(IsShared([] { return true; }));
  EXPECT_FALSE(IsShared([] { return ::nice(3) != -1; }));
  EXPECT_FALSE(IsShared([] {
    const rlimit limit{.rlim_cur = 60, .rlim_max = 60};
    return ::setrlimit(RLIMIT_CPU, &limit) == 0;
  }));
  if (::geteuid() != 0) return;
  EXPECT_FALSE(IsShared([] { return ::unshare(CLONE_NEWNET) == 0; }));
}

// A worker's leftovers are killed when its job ends.
TEST_F(ControlSocketsTest, NoneIsKeptByAWorker) {
  EXPECT_FALSE(FindKeptConnections(
      seconds(60), {{"XDG_RUNTIME_DIR", name_}, {"MUSTER_AGENT_ID", "some-agent"}}));
}

TEST_F(ControlSocketsTest, AFractionOfASecondIsNotForEver) {
  EXPECT_EQ(Find(std::chrono::milliseconds(1))->time, seconds(1));
}

TEST_F(ControlSocketsTest, NoneIsKeptForNoTime) {
  EXPECT_FALSE(Find(seconds(0)));
  EXPECT_FALSE(std::filesystem::exists(folder()));
}

// "Another user of the login node put a socket where mine would be, and read my token."
TEST_F(ControlSocketsTest, NoneIsKeptInAFolderThatOthersCanWriteTo) {
  ASSERT_EQ(::mkdir(folder().c_str(), 0700), 0);
  ASSERT_EQ(::chmod(folder().c_str(), 0770), 0);
  EXPECT_FALSE(Find());
}

TEST_F(ControlSocketsTest, NoneIsKeptBehindALink) {
  std::filesystem::create_directory(absl::StrCat(name_, "/elsewhere"));
  std::filesystem::create_directory_symlink(absl::StrCat(name_, "/elsewhere"), folder());
  EXPECT_FALSE(Find());
}

// The paths are for ssh, which expands some characters, and a socket's path must be short.
TEST_F(ControlSocketsTest, RuntimeFolderThatDoesNotDoIsNotUsed) {
  for (const std::string& name : {std::string("with space"), std::string("%C"), std::string("~"),
                                  std::string("${HOME}"), std::string(80, 'a')}) {
    const std::string runtime = absl::StrCat(name_, "/", name);
    ASSERT_EQ(::mkdir(runtime.c_str(), 0700), 0);
    const auto found = FindKeptConnections(seconds(1), {{"XDG_RUNTIME_DIR", runtime}});
    EXPECT_TRUE(!found || !found->prefix.starts_with(name_)) << found->prefix;
  }
}

}  // namespace
}  // namespace muster::launcher
