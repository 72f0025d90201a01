#include "trainer/io/durable_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

class DurableFileTest : public testing::Test {
 protected:
  DurableFileTest()
      : dir_(fs::path(testing::TempDir()) /
             testing::UnitTest::GetInstance()->current_test_info()->name()),
        path_((dir_ / "file").string()) {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }

  std::string Content() const {
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  int FilesInDirectory() const {
    return static_cast<int>(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()));
  }

  const fs::path dir_;
  const std::string path_;
};

TEST_F(DurableFileTest, AppearsOnlyWhenItIsCommitted) {
  {
    auto file = DurableFile::Create(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append("one ").ok());
    ASSERT_TRUE((*file)->Append("two").ok());
    EXPECT_FALSE(fs::exists(path_));
    ASSERT_TRUE((*file)->Commit().ok());
  }
  EXPECT_EQ(Content(), "one two");
  EXPECT_EQ(FilesInDirectory(), 1);
}

TEST_F(DurableFileTest, LeavesTheOldFileWhenItIsAbandoned) {
  std::ofstream(path_) << "old";
  {
    auto file = DurableFile::Create(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append("new").ok());
  }
  EXPECT_EQ(Content(), "old");
  EXPECT_EQ(FilesInDirectory(), 1);
}

TEST_F(DurableFileTest, ReplacesTheOldFile) {
  std::ofstream(path_) << "old and longer";
  auto file = DurableFile::Create(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("new").ok());
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(Content(), "new");
}

TEST_F(DurableFileTest, SaysAtOnceThatThePathCannotBeWritten) {
  const std::string nowhere = (dir_ / "missing" / "file").string();
  EXPECT_EQ(DurableFile::Create(nowhere).status().message(),
            "write " + nowhere + ": No such file or directory");
  EXPECT_EQ(DurableFile::Create(dir_.string()).status().message(),
            "write " + dir_.string() + ": is a directory");
  EXPECT_EQ(FilesInDirectory(), 0);
}

TEST_F(DurableFileTest, SaysThatTheDirectoryIsGoneWhenItCommits) {
  auto file = DurableFile::Create(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  fs::remove_all(dir_);
  const absl::Status status = (*file)->Commit();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "rename to " + path_ + ": No such file or directory");
}

}  // namespace
}  // namespace muster::trainer
