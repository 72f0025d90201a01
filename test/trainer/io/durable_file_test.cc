#include "trainer/io/formats/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <csignal>
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

  // The result of writing `bytes` to a file.
  static absl::Status Write(const std::string& path, const char* bytes) {
    const auto file = DurableFile::Create(path);
    if (!file.ok()) return file.status();
    const absl::Status written = (*file)->Append(bytes);
    return written.ok() ? (*file)->Commit() : written;
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
  EXPECT_EQ(status.message(), "write " + path_ + ": No such file or directory");
}

// Each time a run was killed, or its machine stopped, it left 200 MB as model.pt.1a2b3c4d.tmp.
TEST_F(DurableFileTest, NothingIsLeftOfAProcessThatWasKilled) {
  const pid_t child = fork();
  if (child == 0) {
    const auto file = DurableFile::Create(path_);
    if (file.ok() && (*file)->Append(std::string(5 << 20, 'x')).ok()) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(FilesInDirectory(), 0);
}

TEST_F(DurableFileTest, ANameThatIsTooLongIsRefusedAtOnce) {
  const std::string path = (dir_ / std::string(250, 'x')).string();
  EXPECT_EQ(DurableFile::Create(path).status().message(), "write " + path + ": File name too long");
}

// A user's file of that name was truncated and removed.
TEST_F(DurableFileTest, AUsersFileThatIsCalledTmpStays) {
  const std::string users = path_ + ".tmp";
  std::ofstream(users) << "mine";
  ASSERT_TRUE(Write(path_, "new").ok());
  { ASSERT_TRUE(DurableFile::Create(path_).ok()); }
  EXPECT_EQ(Content(), "new");
  std::string word;
  std::ifstream(users) >> word;
  EXPECT_EQ(word, "mine");
  EXPECT_EQ(FilesInDirectory(), 2);
}

// In a checkpoint directory, leftovers of a killed run are found by their name.
TEST_F(DurableFileTest, InACheckpointDirectoryTheTemporaryFileIsCalledTmp) {
  const auto file = DurableFile::Create(path_, Folder::kOfCheckpoints);
  EXPECT_TRUE(fs::exists(path_ + ".tmp"));
}

// The link was replaced by a file, and its target did not change.
TEST_F(DurableFileTest, ALinkStaysAndItsTargetIsReplaced) {
  fs::create_directory(dir_ / "inner");
  std::ofstream(dir_ / "inner" / "target") << "old";
  fs::create_symlink("inner/second", path_);
  fs::create_symlink("target", dir_ / "inner" / "second");
  ASSERT_TRUE(Write(path_, "new").ok());
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_TRUE(fs::is_symlink(dir_ / "inner" / "second"));
  EXPECT_FALSE(fs::is_symlink(dir_ / "inner" / "target"));
  EXPECT_EQ(Content(), "new");
}

TEST_F(DurableFileTest, ALinkThatLeadsToNoFileYetMakesIt) {
  fs::create_symlink("target", path_);
  ASSERT_TRUE(Write(path_, "new").ok());
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_TRUE(fs::is_regular_file(dir_ / "target"));
  EXPECT_EQ(Content(), "new");
}

TEST_F(DurableFileTest, ALinkToItselfIsAMistake) {
  fs::create_symlink("file", path_);
  EXPECT_EQ(DurableFile::Create(path_).status().message(),
            "write " + path_ + ": Too many levels of symbolic links");
  EXPECT_TRUE(fs::is_symlink(path_));
}

// The pipe was replaced by a file, and its reader waited forever.
TEST_F(DurableFileTest, APipeGetsTheBytesAndStaysAPipe) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0666), 0);
  // Opening it would block, as it has no reader yet.
  { ASSERT_TRUE(DurableFile::Create(path_).ok()); }
  ASSERT_TRUE(fs::is_fifo(path_));
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  const absl::Status written = Write(path_, "new");
  EXPECT_TRUE(written.ok()) << written;
  std::string bytes(10, '\0');
  bytes.resize(static_cast<std::size_t>(read(reader, bytes.data(), bytes.size())));
  EXPECT_EQ(bytes, "new");
  EXPECT_EQ(read(reader, bytes.data(), bytes.size()), 0) << "its end";
  close(reader);
  EXPECT_TRUE(fs::is_fifo(path_));
  EXPECT_EQ(FilesInDirectory(), 1);
}

TEST_F(DurableFileTest, ADeviceIsWrittenStraight) {
  fs::create_symlink("/dev/null", path_);
  EXPECT_TRUE(Write(path_, "new").ok());
  EXPECT_TRUE(fs::is_symlink(path_));
  fs::remove(path_);
  fs::create_symlink("/dev/full", path_);
  EXPECT_EQ(Write(path_, "new").message(), "write " + path_ + ": No space left on device");
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(FilesInDirectory(), 1);
}

// Like /dev/stdout, which leads to an open file: a rename would detach it from the process that
// opened it.
TEST_F(DurableFileTest, AnOpenFileIsAddedTo) {
  const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(write(fd, "old ", 4), 4);
  ASSERT_TRUE(Write("/proc/self/fd/" + std::to_string(fd), "new").ok());
  std::string bytes(10, '\0');
  bytes.resize(static_cast<std::size_t>(pread(fd, bytes.data(), bytes.size(), 0)));
  EXPECT_EQ(bytes, "old new");
  close(fd);
  EXPECT_EQ(FilesInDirectory(), 1);
}

}  // namespace
}  // namespace muster::trainer
