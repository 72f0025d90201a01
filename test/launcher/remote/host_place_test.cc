// Which process holds a host's lock in a job.
#include "launcher/remote/own_program.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

TEST(HostPlaceTest, OneAtATime) {
  const test::TempDir dir;
  const std::vector<std::string> dirs = {dir.Path("runs")};
  auto first = HostPlace::Take(dirs, "job", 7);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(HostPlace::Take(dirs, "job", 7).status().message(),
            "what was started there before is still ending");
  EXPECT_TRUE(HostPlace::Take(dirs, "job", 8).ok());
  EXPECT_TRUE(HostPlace::Take(dirs, "other", 7).ok());
  first->reset();
  EXPECT_TRUE(HostPlace::Take(dirs, "job", 7).ok());
  EXPECT_TRUE(std::filesystem::is_empty(dirs[0])) << "nothing is left behind";
}

TEST(HostPlaceTest, TheFirstDirectoryThatCanBeUsedIs) {
  const test::TempDir dir;
  dir.Write("file", "");
  const std::vector<std::string> dirs = {dir.Path("file"), dir.Path("runs")};
  const auto place = HostPlace::Take(dirs, "job", 0);
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(HostPlace::Take({dirs[1]}, "job", 0).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(HostPlace::Take({dirs[0]}, "job", 0).ok());
}

// Every user of a machine sees the names of abstract sockets, and could take that of a lost host.
TEST(HostPlaceTest, ADirectoryThatOthersCanChangeIsNotUsed) {
  const test::TempDir dir;
  std::filesystem::create_directory(dir.Path("open"));
  std::filesystem::permissions(dir.Path("open"), std::filesystem::perms::all);
  EXPECT_FALSE(HostPlace::Take({dir.Path("open")}, "job", 0).ok());
  EXPECT_FALSE(HostPlace::Take({dir.Path("x")}, "../job", 0).ok());
}

}  // namespace
}  // namespace muster::launcher
