// "Our batch system sets TMPDIR to a folder of the login node. torchrun did not care, and muster
// did not start."
#include "launcher/machine/environment.h"

#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

class TempDirTest : public testing::Test {
 protected:
  TempDir Find(const Environment& environment) const {
    return FindTempDir(environment, {"/no/tmp", usual_.path()});
  }

  const test::TempDir given_;
  const test::TempDir usual_;
};

TEST_F(TempDirTest, WhatTheEnvironmentNamesComesFirst) {
  EXPECT_EQ(Find({{"TMPDIR", given_.path()}}).path, given_.path());
  EXPECT_EQ(Find({{"TEMP", given_.path()}}).path, given_.path());
  EXPECT_EQ(Find({{"TMP", given_.path()}}).path, given_.path());
  EXPECT_EQ(Find({{"TMP", usual_.path()}, {"TMPDIR", given_.path()}}).path, given_.path());
  EXPECT_EQ(Find({{"TMPDIR", given_.path()}}).note, "");
  EXPECT_TRUE(std::filesystem::is_empty(given_.path())) << "the trial leaves nothing behind";
}

TEST_F(TempDirTest, WithoutAVariableItIsTheFirstUsualPlaceThatCanBeWritten) {
  EXPECT_EQ(Find({}).path, usual_.path());
  EXPECT_EQ(Find({}).note, "");
  EXPECT_EQ(Find({{"TMPDIR", ""}}).path, usual_.path()) << "an unfilled field of a job's template";
}

TEST_F(TempDirTest, WhatIsNotThereIsNamedAndPassedOver) {
  const TempDir found = Find({{"TMPDIR", "/no/such/place"}});
  EXPECT_EQ(found.path, usual_.path());
  EXPECT_EQ(found.note,
            "TMPDIR=/no/such/place cannot be used (No such file or directory); temporary files go "
            "to " +
                usual_.path());
  const TempDir next = Find({{"TMPDIR", "/no/such/place"}, {"TEMP", given_.path()}});
  EXPECT_EQ(next.path, given_.path());
  EXPECT_NE(next.note.find("temporary files go to " + given_.path()), std::string::npos);
}

TEST_F(TempDirTest, FileIsNoDirectory) {
  const TempDir found = Find({{"TMPDIR", given_.Write("file", "")}});
  EXPECT_EQ(found.path, usual_.path());
  EXPECT_NE(found.note.find("(Not a directory)"), std::string::npos) << found.note;
}

// No file can be created in /proc by any user; a read-only or full disk fails at the same point.
TEST_F(TempDirTest, DirectoryInWhichNothingCanBeMadeIsPassedOver) {
  EXPECT_EQ(Find({{"TMPDIR", "/proc"}}).path, usual_.path());
}

TEST_F(TempDirTest, RelativePathIsTheWorkingDirectorys) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(given_.path());
  std::filesystem::create_directory("tmp");
  EXPECT_EQ(Find({{"TMPDIR", "tmp"}}).path, given_.path() + "/tmp");
  std::filesystem::current_path(before);
}

TEST_F(TempDirTest, ThereMayBeNone) {
  const TempDir none = FindTempDir({{"TMPDIR", "/no/such/place"}}, {"/no/tmp"});
  EXPECT_EQ(none.path, "");
  EXPECT_EQ(none.note,
            "TMPDIR=/no/such/place cannot be used (No such file or directory), and no other "
            "temporary directory can be written");
  EXPECT_EQ(FindTempDir({}, {"/no/tmp"}).note, "");
}

}  // namespace
}  // namespace muster::launcher
