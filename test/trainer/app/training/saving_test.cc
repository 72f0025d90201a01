// A slow disk while ranks save: a FIFO replaces the temporary file of the checkpoint, so the writer
// waits until the test reads. In the end it fails, since a FIFO cannot be synced to a disk.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "test/trainer/ranks.h"

namespace muster::trainer {
namespace {

class SavingTest : public testing::Test {
 protected:
  SavingTest() { std::filesystem::create_directories(dir_.Path("run")); }

  std::vector<std::string> Training(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = test::Joined(
        {"--dataset", "generated", "--model", "mlp", "--comm", "gloo", "--no-eval", "--checkpoint",
         dir_.Path("m"), "--keep", "9", "--checkpoint-dir", dir_.Path("run")},
        more);
    return MusterTrainWith(arguments);
  }

  // Makes the disk slow for the checkpoint of the step with this name, of twelve digits.
  void Slow(const std::string& step) {
    path_ = dir_.Path("run") + "/step-" + step + ".pt";
    ASSERT_EQ(mkfifo((path_ + ".tmp").c_str(), 0666), 0);
  }
  // Reads everything written, to the end.
  std::string Read() const {
    const int fd = open((path_ + ".tmp").c_str(), O_RDONLY | O_CLOEXEC);
    std::string text;
    std::vector<char> buffer(1 << 16);
    for (ssize_t got = 0; (got = read(fd, buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    close(fd);
    return text;
  }
  std::string Sentence() const { return "fsync " + path_ + ": Invalid argument"; }

  const test::TempDir dir_;
  std::string path_;
};

// Every rank waited until rank 0 had written its file.
TEST_F(SavingTest, TrainingGoesOnWhileACheckpointIsWrittenAndItsFailureEndsAllRanks) {
  Slow("000000000004");
  BeatEar ear;
  Ranks ranks(Training({"--checkpoint-every", "4"}), 2, {ear.variable()});
  ASSERT_TRUE(ear.WaitForStep(12)) << ranks.errors();
  EXPECT_NE(Read(), "");
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{1, 1}));
  EXPECT_NE(ranks[0].err().find("rank 0: " + Sentence()), std::string::npos) << ranks[0].err();
  EXPECT_NE(ranks[1].err().find("rank 1: on rank 0: " + Sentence()), std::string::npos)
      << ranks[1].err();
}

// A rank gave up after --timeout, because rank 0 was still writing.
TEST_F(SavingTest, TheLastCheckpointMayTakeLongerThanTheTimeout) {
  Slow("000000000017");
  BeatEar ear;
  Ranks ranks(Training({"--checkpoint-every", "0", "--timeout", "10"}), 2, {ear.variable()});
  ASSERT_TRUE(ear.WaitForStep(17)) << ranks.errors();
  // Two ranks, with four beats a second each: longer than the timeout.
  ASSERT_TRUE(ear.WaitForBeats(100)) << ranks.errors();
  EXPECT_NE(Read(), "");
  EXPECT_EQ(ranks.Wait(), (std::vector<int>{1, 1}));
  EXPECT_NE(ranks[1].err().find("rank 1: on rank 0: " + Sentence()), std::string::npos)
      << ranks[1].err();
}

TEST_F(SavingTest, ACheckpointIsWrittenToItsEndWhenAnotherRankIsKilled) {
  Slow("000000000004");
  BeatEar ear;
  Ranks ranks(Training({"--checkpoint-every", "4"}), 2, {ear.variable()});
  ASSERT_TRUE(ear.WaitForStep(8)) << ranks.errors();
  ranks[1].Signal(SIGKILL);
  EXPECT_EQ(ranks[1].Wait(), -SIGKILL);
  const std::string written = Read();
  ASSERT_GT(written.size(), 22u);
  EXPECT_EQ(written.substr(written.size() - 22, 4), "PK\x05\x06") << "the end of a zip file";
  EXPECT_EQ(ranks[0].Wait(), 1);
  EXPECT_NE(ranks[0].err().find("another rank is gone"), std::string::npos) << ranks[0].err();
}

// A second run with the same directory removed the first's files, or replaced its weights; and the
// leftovers of a killed run filled the disk, so that there was no room for a checkpoint.
TEST_F(SavingTest, ADirectoryIsCleanedAtTheStartAndUsedByOneRun) {
  const std::string left = dir_.Path("run") + "/step-000000000007.pt.tmp";
  std::ofstream(left) << "half";
  BeatEar ear;
  Ranks first(Training({"--checkpoint-every", "0", "--epochs", "100000"}), 2, {ear.variable()});
  ASSERT_TRUE(ear.WaitForStep(3)) << first.errors();
  EXPECT_FALSE(std::filesystem::exists(left));
  Ranks second(Training({"--checkpoint-every", "0"}), 2);
  EXPECT_EQ(second.Wait(), (std::vector<int>{2, 2}));
  EXPECT_NE(second[0].err().find("use the checkpoint directory " + dir_.Path("run") + ": process "),
            std::string::npos)
      << second.errors();
  first[0].Signal(SIGTERM);
  EXPECT_EQ(first.Wait(), (std::vector<int>{143, 143})) << first.errors();
  Ranks third(Training({"--checkpoint-every", "0", "--max-steps", "3"}), 2);
  EXPECT_EQ(third.Wait(), (std::vector<int>{0, 0})) << third.errors();
  EXPECT_NE(third[0].out().find("resuming from " + dir_.Path("run")), std::string::npos);
}

}  // namespace
}  // namespace muster::trainer
