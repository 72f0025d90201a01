#include "launcher/machine/environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "launcher/run/run_registry.h"
#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using test::TempDir;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

constexpr uid_t kOther = 12345;

class RunsPlaceTest : public testing::Test {
 protected:
  RunsPlaceTest() { EXPECT_EQ(chmod(temp_.path().c_str(), 01777), 0); }

  RunInfo Info(const std::string& run_id) const { return {.run_id = run_id, .pid = getpid()}; }
  bool GiveAway(const std::string& path) const {
    return geteuid() == 0 && lchown(path.c_str(), kOther, kOther) == 0;
  }

  const TempDir temp_;
  const base::UserPlace place_{.chosen = "", .runtime = "", .temps = {temp_.path()}};
  const std::string uid_ = absl::StrCat(geteuid());
  const std::string prefix_ = temp_.Path("muster-" + uid_);
  const std::string usual_ = "/run/user/" + uid_ + "/muster";
};

TEST_F(RunsPlaceTest, ChosenPlaceIsTheOnlyOne) {
  EXPECT_THAT(RunsDirs(RunsPlaceOf({{"MUSTER_RUNS_DIR", "/a/b/"}, {"XDG_RUNTIME_DIR", "/c"}})),
              ElementsAre("/a/b"));
}

TEST_F(RunsPlaceTest, RuntimeDirectoryComesFirst) {
  base::UserPlace place = RunsPlaceOf({{"XDG_RUNTIME_DIR", "/c/"}});
  EXPECT_THAT(place.temps, ElementsAre("/tmp", "/var/tmp"));
  place.temps = {temp_.path()};
  EXPECT_THAT(RunsDirs(place), ElementsAre("/c/muster", StartsWith(prefix_ + "-"), usual_));
  place.runtime = "/run/user/" + uid_;
  EXPECT_THAT(RunsDirs(place), ElementsAre(usual_, StartsWith(prefix_ + "-")));
}

TEST_F(RunsPlaceTest, LaterRunsAndListsFindWhatTheFirstHasMade) {
  auto first = RunRegistration::Register(RunsDirs(place_), Info("first"));
  ASSERT_TRUE(first.ok()) << first.status();
  auto second = RunRegistration::Register(RunsDirs(place_), Info("second"));
  ASSERT_TRUE(second.ok()) << second.status();
  const std::vector<std::string> dirs = RunsDirs(place_);
  EXPECT_THAT(dirs, ElementsAre(StartsWith(prefix_ + "-"), usual_));
  EXPECT_EQ(ListRuns({dirs[0]}).runs.size(), 2u);
}

// "On a machine without /tmp muster ps showed no run."
TEST_F(RunsPlaceTest, NextTemporaryDirectoryStandsInForOneThatIsMissing) {
  base::UserPlace place = place_;
  place.temps = {"/no/tmp", temp_.path()};
  const auto run = RunRegistration::Register(RunsDirs(place), Info("run"));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(RunsDirs(place),
              ElementsAre(StartsWith("/no/tmp/"), StartsWith(prefix_ + "-"), usual_));
  EXPECT_THAT(ListRuns(RunsDirs(place)).runs, ElementsAre(Info("run")));
}

// Two that start at once must not each make one of its own.
TEST_F(RunsPlaceTest, WhatThereMustBeOneOfHasTheSamePlaceForAll) {
  EXPECT_EQ(base::FoldersForOne(place_).front(), prefix_ + "-0");
  const auto run = RunRegistration::Register(RunsDirs(place_), Info("run"));
  EXPECT_EQ(base::FoldersForOne(place_).front(), prefix_ + "-0");
  ASSERT_EQ(mkdir((prefix_ + "-0").c_str(), 0700), 0);
  EXPECT_EQ(RunsDirs(place_).front(), prefix_ + "-0");
}

// "Another user had made /tmp/muster-1000, and muster ps showed none of my runs any more."
TEST_F(RunsPlaceTest, NoNameThatAnotherUserTakesIsInTheWay) {
  ASSERT_EQ(mkdir(prefix_.c_str(), 0700), 0);
  ASSERT_EQ(mkdir((prefix_ + "-guessed").c_str(), 0777), 0);
  ASSERT_EQ(symlink("/etc", (prefix_ + "-link").c_str()), 0);
  if (!GiveAway(prefix_) || !GiveAway(prefix_ + "-guessed") || !GiveAway(prefix_ + "-link")) {
    GTEST_SKIP() << "needs root";
  }
  const auto run = RunRegistration::Register(RunsDirs(place_), Info("mine"));
  ASSERT_TRUE(run.ok()) << run.status();
  const std::vector<std::string> dirs = RunsDirs(place_);
  ASSERT_THAT(dirs, ElementsAre(StartsWith(prefix_ + "-"), usual_));
  const RunList list = ListRuns({dirs[0]});
  EXPECT_THAT(list.runs, ElementsAre(Info("mine")));
  EXPECT_THAT(list.warnings, IsEmpty());
}

TEST_F(RunsPlaceTest, RunsThatRegisteredUnderThePlainNameAreStillListed) {
  const auto before = RunRegistration::Register({prefix_}, Info("before"));
  ASSERT_TRUE(before.ok()) << before.status();
  const auto now = RunRegistration::Register(RunsDirs(place_), Info("now"));
  ASSERT_TRUE(now.ok()) << now.status();
  const std::vector<std::string> dirs = RunsDirs(place_);
  ASSERT_THAT(dirs, ElementsAre(StartsWith(prefix_ + "-"), usual_, prefix_));
  EXPECT_EQ(ListRuns({dirs[0]}).runs, std::vector{Info("now")});
  EXPECT_EQ(ListRuns({dirs[2]}).runs, std::vector{Info("before")});
}

}  // namespace
}  // namespace muster::launcher
