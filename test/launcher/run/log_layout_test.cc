#include "launcher/run/rank_layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"

namespace muster::launcher {
namespace {

using test::TempDir;

using testing::HasSubstr;
using testing::MatchesRegex;

bool IsPrivateDirectory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && (info.st_mode & 0777) == 0700;
}

// As the workers' starts do.
void MakeRankDirectories(const AttemptLogs& logs) {
  for (const RankLogs& rank : logs.ranks) ASSERT_EQ(mkdir(rank.directory.c_str(), 0700), 0);
}

TEST(LogLayoutTest, NamesAreTorchruns) {
  const TempDir temp;
  const auto layout = LogLayout::Create(temp.path() + "/logs/here", "job1", "/nowhere");
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_THAT(layout->run_directory(), MatchesRegex(temp.path() + "/logs/here/job1_[a-z0-9]{8}"));
  EXPECT_TRUE(IsPrivateDirectory(layout->run_directory()));

  const auto attempt = layout->BeginAttempt(2, 5, 2);
  ASSERT_TRUE(attempt.ok()) << attempt.status();
  const std::string expected = layout->run_directory() + "/attempt_2";
  EXPECT_EQ(attempt->directory, expected);
  ASSERT_EQ(attempt->ranks.size(), 2u);
  EXPECT_EQ(attempt->ranks[1], (RankLogs{expected + "/1", expected + "/1/stdout.log",
                                         expected + "/1/stderr.log", expected + "/1/error.json"}));
  EXPECT_TRUE(IsPrivateDirectory(expected));
}

// --rdzv-id="team/exp 1" was refused, as was whatever else is no plain word.
TEST(LogLayoutTest, AnyRunIdNamesADirectory) {
  const TempDir temp;
  const struct {
    std::string run_id;
    std::string begins;
  } cases[] = {{"my job", "my job_"},      {"team/exp", "team%2Fexp_"},
               {"../..", "..%2F.._"},      {"..", ".._"},
               {"100%", "100%25_"},        {"-rf", "-rf_"},
               {"größe", "größe_"},        {std::string(255, 'x'), std::string(246, 'x') + "_"},
               {"me@host:7", "me@host:7_"}};
  for (const auto& each : cases) {
    const auto layout = LogLayout::Create(temp.path(), each.run_id, "/nowhere");
    ASSERT_TRUE(layout.ok()) << layout.status();
    const std::filesystem::path made = layout->run_directory();
    EXPECT_EQ(made.parent_path(), temp.path());
    EXPECT_EQ(made.filename().string().substr(0, each.begins.size()), each.begins);
    EXPECT_TRUE(IsPrivateDirectory(made));
  }
}

TEST(LogLayoutTest, RoundWithTheSameRestartCountKeepsTheEarlierOnesLogs) {
  const TempDir temp;
  const auto layout = LogLayout::Create(temp.path(), "job1", "/nowhere");
  ASSERT_TRUE(layout.ok());
  const auto first = layout->BeginAttempt(0, 0, 1);
  ASSERT_TRUE(first.ok());
  MakeRankDirectories(*first);
  std::ofstream(first->ranks[0].stdout_log) << "loss 1.0";

  EXPECT_EQ(layout->BeginAttempt(0, 1, 1)->directory, first->directory + ".round1");
  EXPECT_EQ(layout->BeginAttempt(0, 2, 1)->directory, first->directory + ".round2");
  EXPECT_EQ(layout->BeginAttempt(1, 3, 1)->directory, layout->run_directory() + "/attempt_1");
  EXPECT_EQ(std::filesystem::file_size(first->ranks[0].stdout_log), 8u);
  // Round numbers are never reused, so this cannot happen; it would mix two rounds' logs.
  EXPECT_FALSE(layout->BeginAttempt(0, 1, 1).ok());
}

TEST(LogLayoutTest, AgentsThatShareALogDirectoryDoNotShareLogs) {
  const TempDir temp;
  const auto a = LogLayout::Create(temp.path(), "job1", "/nowhere");
  const auto b = LogLayout::Create(temp.path(), "job1", "/nowhere");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->run_directory(), b->run_directory());
}

TEST(LogLayoutTest, WithoutALogDirectoryTheLayoutIsTheSameInAFreshOneInTheTemporaryDirectory) {
  const TempDir temp;
  const auto layout = LogLayout::Create("", "job1", temp.path());
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_THAT(layout->run_directory(),
              MatchesRegex(temp.path() + "/muster_[a-z0-9]{8}/job1_[a-z0-9]{8}"));
  const auto attempt = layout->BeginAttempt(1, 3, 2);
  ASSERT_TRUE(attempt.ok()) << attempt.status();
  const std::string directory = layout->run_directory() + "/attempt_1";
  EXPECT_EQ(attempt->ranks[0].error_file, directory + "/0/error.json");
  EXPECT_EQ(attempt->ranks[1].error_file, directory + "/1/error.json");
}

TEST(LogLayoutTest, RelativeDirectoryIsMadeAbsoluteForWorkersThatChangeTheirs) {
  const TempDir temp;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(temp.path());
  const auto layout = LogLayout::Create("logs", "job1", "/nowhere");
  std::filesystem::current_path(before);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_THAT(layout->run_directory(), MatchesRegex(temp.path() + "/logs/job1_[a-z0-9]{8}"));
}

TEST(LogLayoutTest, DevNullTurnsLogsOff) {
  const auto layout = LogLayout::Create("/dev/null", "job1", "/nowhere");
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->run_directory(), "");
  const auto attempt = layout->BeginAttempt(0, 0, 2);
  ASSERT_TRUE(attempt.ok());
  EXPECT_EQ(attempt->directory, "");
  EXPECT_EQ(attempt->ranks, (std::vector<RankLogs>{{}, {}}));
}

TEST(LogLayoutTest, DirectoryThatCannotBeMadeIsNamedWithTheCause) {
  const TempDir temp;
  const std::string file = temp.Write("file", "");
  EXPECT_EQ(LogLayout::Create(file + "/logs", "job1", "/nowhere").status().message(),
            "cannot create log directory " + file + "/logs: Not a directory");
  EXPECT_THAT(std::string(LogLayout::Create(file, "job1", "/nowhere").status().message()),
              HasSubstr("cannot create log directory " + file));
  EXPECT_EQ(LogLayout::Create("", "job1", "/nowhere").status().message(),
            "cannot create log directory /nowhere/muster_*: No such file or directory");
}

TEST(LogLayoutTest, DirectoryThatDisappearedWhileTheJobRanIsAnError) {
  const TempDir temp;
  const auto layout = LogLayout::Create(temp.path(), "job1", "/nowhere");
  ASSERT_TRUE(layout.ok());
  ASSERT_TRUE(std::filesystem::remove(layout->run_directory()));
  EXPECT_EQ(layout->BeginAttempt(0, 0, 1).status().message(),
            "cannot create log directory " + layout->run_directory() +
                "/attempt_0: No such file or directory");
}

// "Every run left an empty muster_* tree in TMPDIR."
TEST(LogLayoutTest, WhatIsEmptyAtTheEndIsRemoved) {
  const TempDir temp;
  const auto layout = LogLayout::Create("", "job1", temp.path());
  ASSERT_TRUE(layout.ok());
  const auto logs = layout->BeginAttempt(0, 0, 2);
  ASSERT_TRUE(logs.ok());
  MakeRankDirectories(*logs);
  EXPECT_FALSE(HasLogs(layout->run_directory()));
  layout->RemoveEmpty();
  EXPECT_TRUE(std::filesystem::is_empty(temp.path()));
}

TEST(LogLayoutTest, WhatSomebodyHasWrittenStays) {
  const TempDir temp;
  const auto layout = LogLayout::Create(temp.path(), "job1", "/nowhere");
  ASSERT_TRUE(layout.ok());
  const auto first = layout->BeginAttempt(0, 0, 2);
  const auto second = layout->BeginAttempt(1, 1, 1);
  ASSERT_TRUE(first.ok() && second.ok());
  MakeRankDirectories(*first);
  MakeRankDirectories(*second);
  std::ofstream(first->ranks[1].error_file) << "{}";
  EXPECT_TRUE(HasLogs(layout->run_directory()));
  layout->RemoveEmpty();
  EXPECT_TRUE(std::filesystem::exists(first->ranks[1].error_file));
  EXPECT_FALSE(std::filesystem::exists(first->directory + "/0"));
  EXPECT_FALSE(std::filesystem::exists(second->directory));
}

// A worker had made a directory for what it was going to write, and found it gone.
TEST(LogLayoutTest, EmptyDirectoriesOfWorkersStay) {
  const TempDir temp;
  const auto layout = LogLayout::Create(temp.path(), "job1", "/nowhere");
  ASSERT_TRUE(layout.ok());
  const auto logs = layout->BeginAttempt(0, 0, 1);
  ASSERT_TRUE(logs.ok());
  MakeRankDirectories(*logs);
  const std::string mine = logs->directory + "/mine", ckpt = layout->run_directory() + "/ckpt/a";
  ASSERT_TRUE(std::filesystem::create_directories(mine));
  ASSERT_TRUE(std::filesystem::create_directories(ckpt));
  layout->RemoveEmpty();
  EXPECT_TRUE(std::filesystem::exists(mine));
  EXPECT_TRUE(std::filesystem::exists(ckpt));
  EXPECT_FALSE(std::filesystem::exists(logs->directory + "/0"));
}

TEST(LogLayoutTest, WithoutLogsThereIsNothingToRemove) {
  const auto layout = LogLayout::Create("/dev/null", "job1", "/nowhere");
  ASSERT_TRUE(layout.ok());
  layout->RemoveEmpty();
  EXPECT_FALSE(HasLogs(layout->run_directory()));
}

}  // namespace
}  // namespace muster::launcher
