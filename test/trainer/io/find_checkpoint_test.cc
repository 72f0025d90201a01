#include "trainer/io/checkpoint_file.h"

#include <filesystem>

#include <gtest/gtest.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include "test/support/temp_dir.h"
#include "trainer/io/checkpoint_directory.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

class FindCheckpointTest : public testing::Test {
 protected:
  FindCheckpointTest() {
    CheckpointDirectory directory = CheckpointDirectory::Open(run_, /*keep=*/3).value();
    for (const std::int64_t step : {10, 20, 30}) {
      Dict dict;
      dict.Set("w", at::full({100}, static_cast<double>(step)));
      EXPECT_TRUE(directory.Save(step, dict, "job").ok());
    }
    EXPECT_TRUE(directory.MarkBest(20).ok());
  }
  std::string Step(const std::string& two) const { return run_ + "/step-0000000000" + two + ".pt"; }

  const test::TempDir temp_;
  const std::string run_ = temp_.path() + "/run";
};

TEST_F(FindCheckpointTest, TheNewestTheLatestAndTheBestOfADirectory) {
  EXPECT_EQ(FindCheckpoint(run_)->path, Step("30"));
  EXPECT_EQ(FindCheckpoint(run_ + "/latest")->path, Step("30"));
  EXPECT_EQ(FindCheckpoint(run_ + "/best")->path, Step("20"));
  EXPECT_EQ(FindCheckpoint(Step("10"))->path, Step("10"));
}

TEST_F(FindCheckpointTest, ADamagedOneIsPassedOverAndTold) {
  fs::resize_file(Step("30"), 100);
  const auto found = FindCheckpoint(run_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->path, Step("20"));
  EXPECT_EQ(found->warnings.size(), 1u);
}

TEST_F(FindCheckpointTest, OtherPathsAreWhatTheyAre) {
  const std::string none = temp_.path() + "/none.pt";
  EXPECT_EQ(FindCheckpoint(none)->path, none);
  const std::string best = temp_.Write("best", "PK and so on");
  EXPECT_EQ(FindCheckpoint(best)->path, best) << "somebody's file of that name";
}

TEST_F(FindCheckpointTest, ALatestThatNamesNoneYetSaysSo) {
  const auto directory = CheckpointDirectory::Open(run_, /*keep=*/3);
  ASSERT_TRUE(directory->WriteLatest({std::nullopt, "another", {10, 20, 30}}).ok());
  EXPECT_EQ(FindCheckpoint(run_ + "/latest").status().message(),
            "read the checkpoint that " + run_ + "/latest names: the last run has saved none yet");
}

TEST_F(FindCheckpointTest, ADirectoryWithoutCheckpointsIsRefused) {
  fs::create_directories(temp_.path() + "/empty");
  EXPECT_EQ(FindCheckpoint(temp_.path() + "/empty").status().message(),
            "read a checkpoint from " + temp_.path() +
                "/empty: it has neither an index.json nor checkpoints (step-000000000100, "
                "step-000000000100.pt, ...)");
}

}  // namespace
}  // namespace muster::trainer
