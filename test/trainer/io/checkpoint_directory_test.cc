#include "trainer/io/checkpoint_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

namespace fs = std::filesystem;

constexpr char kJob[] = "1763840283123456-k3j9x2ab vision";

class CheckpointDirectoryTest : public testing::Test {
 protected:
  CheckpointDirectoryTest()
      : path_(testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(path_);
  }

  CheckpointDirectory Open(int keep = 3) { return CheckpointDirectory::Open(path_, keep).value(); }

  static Value At(std::int64_t step) {
    Dict dict;
    dict.Set("step", step);
    dict.Set("w", at::full({1000}, static_cast<double>(step)));
    return dict;
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string path_;
};

TEST_F(CheckpointDirectoryTest, TheNewestAreKeptAndTheLatestIsFound) {
  CheckpointDirectory directory = Open(2);
  EXPECT_FALSE(directory.FindNewest().value().has_value());
  for (const std::int64_t step : {9, 10, 300}) {
    EXPECT_EQ(directory.Save(step, At(step), kJob).value(), directory.PathOf(step));
  }
  EXPECT_EQ(Files(),
            (std::vector<std::string>{"latest", "step-000000000010.pt", "step-000000000300.pt"}));
  const auto found = Open().FindNewest();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->step, 300);
  EXPECT_EQ((*found)->path, directory.PathOf(300));
  EXPECT_EQ(ReadTorchFile((*found)->path)->GetInt("step").value(), 300);
  EXPECT_TRUE((*found)->warnings.empty());
}

TEST_F(CheckpointDirectoryTest, TheBestIsKeptUntilThereIsABetterOne) {
  CheckpointDirectory directory = Open(1);
  const auto save = [&](std::int64_t step) {
    return directory.Save(step, At(step), kJob).status();
  };
  ASSERT_TRUE(save(10).ok());
  ASSERT_TRUE(directory.MarkBest(10).ok());
  ASSERT_TRUE(save(20).ok());
  ASSERT_TRUE(save(30).ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"best", "latest", "step-000000000010.pt",
                                               "step-000000000030.pt"}));
  ASSERT_TRUE(directory.MarkBest(20).ok()) << "which is gone";
  ASSERT_TRUE(Open(1).Save(40, At(40), kJob).ok()) << "another process";
  EXPECT_EQ(Files(), (std::vector<std::string>{"best", "latest", "step-000000000010.pt",
                                               "step-000000000040.pt"}));
  ASSERT_TRUE(directory.MarkBest(40).ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"best", "latest", "step-000000000040.pt"}));
  ASSERT_TRUE(save(50).ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"best", "latest", "step-000000000040.pt",
                                               "step-000000000050.pt"}));
  EXPECT_EQ((*directory.FindNewest())->step, 50);
}

TEST_F(CheckpointDirectoryTest, ATornCheckpointIsPassedOverAndTold) {
  CheckpointDirectory directory = Open();
  for (const std::int64_t step : {1, 2, 3}) ASSERT_TRUE(directory.Save(step, At(step), kJob).ok());
  fs::resize_file(directory.PathOf(3), 2000);
  fs::resize_file(directory.PathOf(2), 0);
  const auto found = directory.FindNewest();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->step, 1);
  EXPECT_EQ((*found)->warnings, (std::vector<std::string>{
                                    "the checkpoint of step 3 is skipped: read " +
                                        directory.PathOf(3) + ": it is damaged: its end is missing",
                                    "the checkpoint of step 2 is skipped: read " +
                                        directory.PathOf(2) + ": it is not a file of torch.save"}));
  fs::resize_file(directory.PathOf(1), 100);
  const absl::Status none = directory.FindNewest().status();
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(none.message().find("load a checkpoint from " + path_ +
                                ": all 3 checkpoints are damaged; the newest: "),
            0u);
}

TEST_F(CheckpointDirectoryTest, LatestIsFollowedWhenARunIsSetBack) {
  CheckpointDirectory directory = Open(2);
  for (const std::int64_t step : {10, 20}) ASSERT_TRUE(directory.Save(step, At(step), kJob).ok());
  std::ofstream(path_ + "/latest") << "step-000000000010.pt\n";
  EXPECT_EQ(directory.FindNewest().value()->step, 10);
  // The run goes on from there; what it had before is not counted, nor removed.
  for (const std::int64_t step : {12, 14, 16})
    ASSERT_TRUE(directory.Save(step, At(step), kJob).ok());
  EXPECT_EQ(directory.Steps(), (std::vector<std::int64_t>{14, 16, 20}));
  EXPECT_EQ(directory.FindNewest().value()->step, 16);
}

TEST_F(CheckpointDirectoryTest, WithoutLatestTheNewestIsFound) {
  CheckpointDirectory directory = Open();
  for (const std::int64_t step : {10, 20}) ASSERT_TRUE(directory.Save(step, At(step), kJob).ok());
  for (const std::string text : {"", "nonsense\n", "step-000000000099.pt\n"}) {
    std::ofstream(path_ + "/latest") << text;
    const auto found = directory.FindNewest();
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ((*found)->step, 20) << text;
    EXPECT_EQ((*found)->warnings.size(), text.find("99") == std::string::npos ? 0u : 1u);
  }
}

TEST_F(CheckpointDirectoryTest, LatestSaysWhichJobItIsOf) {
  using Latest = CheckpointDirectory::Latest;
  CheckpointDirectory directory = Open();
  EXPECT_EQ(directory.ReadLatest(), std::nullopt);
  ASSERT_TRUE(directory.Save(10, At(10), kJob).ok());
  EXPECT_EQ(directory.ReadLatest(), (Latest{10, kJob}));
  ASSERT_TRUE(directory.WriteLatest({std::nullopt, "another"}).ok());
  EXPECT_EQ(directory.ReadLatest(), (Latest{std::nullopt, "another"}));
  EXPECT_EQ(directory.FindNewest().value()->step, 10) << "what is there is still there";
  std::ofstream(path_ + "/latest") << "step-000000000010.pt\n";
  EXPECT_EQ(directory.ReadLatest(), (Latest{10, ""}));
}

TEST_F(CheckpointDirectoryTest, ASignIsSeenInTheSameDirectoryAlone) {
  CheckpointDirectory directory = Open();
  const absl::StatusOr<std::string> sign = directory.LeaveSign();
  ASSERT_TRUE(sign.ok()) << sign.status();
  fs::create_directory_symlink(path_, path_ + ".link");
  EXPECT_TRUE(CheckpointDirectory::Open(path_ + ".link", 1)->HasSign(*sign));
  EXPECT_FALSE(CheckpointDirectory::Open(path_ + ".other", 1)->HasSign(*sign));
  directory.RemoveSign(*sign);
  EXPECT_EQ(Files(), std::vector<std::string>());
  fs::remove(path_ + ".link");
  fs::remove(path_ + ".other");
}

TEST_F(CheckpointDirectoryTest, AFullDiskLeavesTheOlderCheckpoints) {
  CheckpointDirectory directory = Open(1);
  ASSERT_TRUE(directory.Save(1, At(1), kJob).ok());
  fs::create_symlink("/dev/full", directory.PathOf(2) + ".tmp");  // a device that is always full
  const absl::Status full = directory.Save(2, At(2), kJob).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(full.message(), "write " + directory.PathOf(2) + ": No space left on device");
  EXPECT_EQ(Files(), (std::vector<std::string>{"latest", "step-000000000001.pt"}));
  EXPECT_EQ(directory.FindNewest().value()->step, 1);
}

TEST_F(CheckpointDirectoryTest, WhatARunThatWasKilledLeftIsRemovedAndOtherFilesStay) {
  CheckpointDirectory directory = Open(1);
  std::ofstream(directory.PathOf(5) + ".tmp") << "half";
  ASSERT_TRUE(directory.LeaveSign().ok());
  std::ofstream(path_ + "/notes.tmp") << "mine";
  std::ofstream(path_ + "/step-7.pt") << "mine";
  ASSERT_TRUE(directory.Save(6, At(6), kJob).ok());
  EXPECT_EQ(Files(),
            (std::vector<std::string>{"latest", "notes.tmp", "step-000000000006.pt", "step-7.pt"}));
}

TEST_F(CheckpointDirectoryTest, ADirectoryThatCannotBeMadeIsTheUsersMistake) {
  std::ofstream(path_) << "a file";
  const absl::Status status = CheckpointDirectory::Open(path_, 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "make the directory " + path_ + ": Not a directory");
}

}  // namespace
}  // namespace muster::trainer
