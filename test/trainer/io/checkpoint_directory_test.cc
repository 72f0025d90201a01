#include "trainer/io/checkpoint_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include "trainer/io/checkpoint_file.h"
#include "trainer/io/shard_plan.h"
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

  // Writes the shards of a checkpoint and returns its index, without writing it.
  static ShardIndex WriteTwoShards(const CheckpointDirectory& directory, std::int64_t step) {
    EXPECT_TRUE(directory.PrepareShards(step).ok());
    ShardPlan plan = PlanShards(At(step), 2).value();
    for (const int shard : {0, 1}) {
      const auto place = static_cast<std::size_t>(shard);
      plan.index.files[place] =
          WriteShard(directory.ShardsPathOf(step), shard, 2, plan.tensors[place]).value();
    }
    return plan.index;
  }
  static absl::Status SaveShards(CheckpointDirectory& directory, std::int64_t step) {
    return directory.SaveIndex(step, WriteTwoShards(directory, step), kJob);
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
    EXPECT_TRUE(directory.Save(step, At(step), kJob).ok());
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
  const auto save = [&](std::int64_t step) { return directory.Save(step, At(step), kJob); };
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

// The new best one was marked only after older ones had been removed, and it was one of them.
TEST_F(CheckpointDirectoryTest, TheBestIsMarkedBeforeOldOnesAreRemoved) {
  CheckpointDirectory directory = Open(1);
  ASSERT_TRUE(directory.Save(10, At(10), kJob).ok());
  ASSERT_TRUE(directory.Save(20, At(20), kJob, 10).ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"best", "latest", "step-000000000010.pt",
                                               "step-000000000020.pt"}));
  ASSERT_TRUE(directory.PrepareShards(30).ok());
  ASSERT_TRUE(directory.SaveIndex(30, WriteTwoShards(directory, 30), kJob, 20).ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"best", "latest", "step-000000000020.pt",
                                               "step-000000000030"}));
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

TEST_F(CheckpointDirectoryTest, FilesAndShardsAreCountedAndFoundAlike) {
  CheckpointDirectory directory = Open(2);
  ASSERT_TRUE(directory.Save(10, At(10), kJob).ok());
  ASSERT_TRUE(SaveShards(directory, 20).ok());
  EXPECT_EQ(directory.PathOf(20), path_ + "/step-000000000020");
  ASSERT_TRUE(directory.MarkBest(20).ok());
  ASSERT_TRUE(directory.Save(30, At(30), kJob).ok());
  ASSERT_TRUE(SaveShards(directory, 40).ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"best", "latest", "step-000000000020",
                                               "step-000000000030.pt", "step-000000000040"}));
  EXPECT_EQ(Open().ReadLatest(), (CheckpointDirectory::Latest{40, kJob, {}}));
  const auto found = Open().FindNewest();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->path, directory.PathOf(40));
  EXPECT_EQ(ReadCheckpoint((*found)->path)->GetInt("step").value(), 40);
  ASSERT_TRUE(directory.MarkBest(40).ok());
  ASSERT_TRUE(SaveShards(directory, 50).ok());
  EXPECT_EQ(Files(),
            (std::vector<std::string>{"best", "latest", "step-000000000040", "step-000000000050"}));
}

TEST_F(CheckpointDirectoryTest, ACheckpointTakesThePlaceOfThatOfTheSameStepInTheOtherForm) {
  CheckpointDirectory directory = Open();
  ASSERT_TRUE(directory.Save(5, At(5), kJob).ok());
  const ShardIndex index = WriteTwoShards(directory, 5);
  EXPECT_EQ(directory.FindNewest().value()->path, path_ + "/step-000000000005.pt");
  ASSERT_TRUE(directory.SaveIndex(5, index, kJob).ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"latest", "step-000000000005"}));
  EXPECT_EQ(directory.FindNewest().value()->path, path_ + "/step-000000000005");
  ASSERT_TRUE(directory.Save(5, At(5), kJob).ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"latest", "step-000000000005.pt"}));
  EXPECT_EQ(directory.FindNewest().value()->path, path_ + "/step-000000000005.pt");
}

TEST_F(CheckpointDirectoryTest, ShardsWithoutAnIndexArePassedOverToldAndLaterRemoved) {
  CheckpointDirectory directory = Open();
  ASSERT_TRUE(SaveShards(directory, 4).ok());
  WriteTwoShards(directory, 8);
  const auto found = directory.FindNewest();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->step, 4);
  EXPECT_EQ((*found)->warnings,
            std::vector<std::string>{"the checkpoint of step 8 is skipped: the run that wrote " +
                                     path_ + "/step-000000000008 ended before it was whole"});
  ASSERT_TRUE(directory.Save(6, At(6), kJob).ok());
  EXPECT_EQ(Files(),
            (std::vector<std::string>{"latest", "step-000000000004", "step-000000000006.pt"}));
}

TEST_F(CheckpointDirectoryTest, ShardsThatAreDamagedArePassedOverAndTold) {
  CheckpointDirectory directory = Open();
  for (const std::int64_t step : {4, 8, 12}) ASSERT_TRUE(SaveShards(directory, step).ok());
  const std::string second = "/shard-00002-of-00002.safetensors";
  fs::remove(directory.PathOf(12) + second);
  fs::resize_file(directory.PathOf(8) + second, 10);
  const auto found = directory.FindNewest();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->step, 4);
  ASSERT_EQ((*found)->warnings.size(), 2u);
  EXPECT_EQ((*found)->warnings[0], "the checkpoint of step 12 is skipped: read " +
                                       directory.PathOf(12) + second +
                                       ": No such file or directory");
  EXPECT_EQ((*found)->warnings[1].find("the checkpoint of step 8 is skipped: read " +
                                       directory.PathOf(8) + second +
                                       ": it is damaged: it has 10 bytes, and the index says "),
            0u);
}

// A run that was set back reaches the same step again, with fewer ranks.
TEST_F(CheckpointDirectoryTest, ShardsThatAreWrittenAgainLeaveNoneOfBefore) {
  CheckpointDirectory directory = Open();
  ASSERT_TRUE(SaveShards(directory, 4).ok());
  ASSERT_TRUE(directory.PrepareShards(4).ok());
  EXPECT_EQ(directory.Steps(), std::vector<std::int64_t>());
  ShardPlan plan = PlanShards(At(4), 1).value();
  plan.index.files[0] = WriteShard(directory.ShardsPathOf(4), 0, 1, plan.tensors[0]).value();
  ASSERT_TRUE(directory.SaveIndex(4, plan.index, kJob).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.PathOf(4)), fs::directory_iterator()),
            2);
  EXPECT_EQ(directory.FindNewest().value()->step, 4);
}

TEST_F(CheckpointDirectoryTest, LatestIsFollowedWhenARunIsSetBack) {
  CheckpointDirectory directory = Open(2);
  for (const std::int64_t step : {10, 20}) ASSERT_TRUE(directory.Save(step, At(step), kJob).ok());
  std::ofstream(path_ + "/latest") << "step-000000000010.pt\n";
  EXPECT_EQ(directory.FindNewest().value()->step, 10);
  // The run continues from there; earlier checkpoints are neither counted nor removed.
  for (const std::int64_t step : {12, 14, 16})
    ASSERT_TRUE(directory.Save(step, At(step), kJob).ok());
  EXPECT_EQ(directory.Steps(), (std::vector<std::int64_t>{14, 16, 20}));
  EXPECT_EQ(directory.FindNewest().value()->step, 16);
}

// A run started in a used directory lost its own checkpoints in favor of the previous run's, and
// fell back on those.
TEST_F(CheckpointDirectoryTest,
       CheckpointsOfTheRunBeforeAreNeitherCountedNorRemovedNorFallenBackOn) {
  CheckpointDirectory directory = Open(2);
  for (const std::int64_t step : {20, 40}) ASSERT_TRUE(directory.Save(step, At(step), kJob).ok());
  const std::vector<std::int64_t> strangers = directory.StrangersTo(std::nullopt);
  EXPECT_EQ(strangers, (std::vector<std::int64_t>{20, 40}));
  ASSERT_TRUE(directory.WriteLatest({std::nullopt, "another", strangers}).ok());
  for (const std::int64_t step : {10, 20, 30, 50, 60}) {
    ASSERT_TRUE(Open(2).Save(step, At(step), "another").ok());
  }
  EXPECT_EQ(directory.Steps(), (std::vector<std::int64_t>{40, 50, 60}));
  EXPECT_EQ(directory.ReadLatest(), (CheckpointDirectory::Latest{60, "another", {40}}));
  for (const std::int64_t step : {50, 60}) fs::resize_file(directory.PathOf(step), 100);
  EXPECT_FALSE(directory.FindNewest().ok()) << "40 is not of this run";
}

TEST_F(CheckpointDirectoryTest, ARunThatIsSetBackHasTheLaterOnesForStrangers) {
  CheckpointDirectory directory = Open();
  for (const std::int64_t step : {10, 20, 30})
    ASSERT_TRUE(directory.Save(step, At(step), kJob).ok());
  EXPECT_EQ(directory.StrangersTo(30), std::vector<std::int64_t>());
  EXPECT_EQ(directory.StrangersTo(10), (std::vector<std::int64_t>{20, 30}));
  ASSERT_TRUE(directory.WriteLatest({10, "another", {20, 30}}).ok());
  ASSERT_TRUE(directory.Save(15, At(15), "another").ok());
  ASSERT_TRUE(directory.Save(25, At(25), "another").ok());
  EXPECT_EQ(directory.StrangersTo(25), (std::vector<std::int64_t>{20, 30}));
  EXPECT_EQ(directory.StrangersTo(30), (std::vector<std::int64_t>{10, 15, 20, 25}))
      << "which of them it came by is not known";
  EXPECT_EQ(directory.StrangersTo(18), (std::vector<std::int64_t>{20, 25, 30}))
      << "of its line, though that step is elsewhere";
}

// The previous run's mark was on the new run's checkpoint of the same step.
TEST_F(CheckpointDirectoryTest, AStrangerIsNotTheBest) {
  CheckpointDirectory directory = Open();
  for (const std::int64_t step : {10, 20}) {
    ASSERT_TRUE(directory.Save(step, At(step), kJob).ok());
  }
  ASSERT_TRUE(directory.MarkBest(20).ok());
  ASSERT_TRUE(directory.WriteLatest({std::nullopt, "another", {10, 20}}).ok());
  EXPECT_EQ(directory.ReadBest(), std::nullopt);
  ASSERT_TRUE(directory.MarkBest(10).ok());
  EXPECT_EQ(directory.ReadBest(), std::nullopt);
  ASSERT_TRUE(directory.Save(20, At(20), "another", 20).ok());
  EXPECT_EQ(directory.ReadBest(), 20);
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
  EXPECT_EQ(directory.ReadLatest(), (Latest{10, kJob, {}}));
  ASSERT_TRUE(directory.WriteLatest({std::nullopt, "another", {}}).ok());
  EXPECT_EQ(directory.ReadLatest(), (Latest{std::nullopt, "another", {}}));
  EXPECT_EQ(directory.FindNewest().value()->step, 10) << "what is there is still there";
  std::ofstream(path_ + "/latest") << "step-000000000010.pt\n";
  EXPECT_EQ(directory.ReadLatest(), (Latest{10, "", {}}));
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
  const absl::Status full = directory.Save(2, At(2), kJob);
  EXPECT_EQ(full.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(full.message(), "write " + directory.PathOf(2) + ": No space left on device");
  EXPECT_EQ(Files(), (std::vector<std::string>{"latest", "step-000000000001.pt"}));
  EXPECT_EQ(directory.FindNewest().value()->step, 1);
}

TEST_F(CheckpointDirectoryTest, WhatARunThatWasKilledLeftIsRemovedAndOtherFilesStay) {
  CheckpointDirectory directory = Open(1);
  std::ofstream(directory.PathOf(5) + ".tmp") << "half";
  const std::string sign = directory.LeaveSign().value();
  std::ofstream(path_ + "/notes.tmp") << "mine";
  std::ofstream(path_ + "/step-7.pt") << "mine";
  ASSERT_TRUE(directory.Save(6, At(6), kJob).ok());
  EXPECT_FALSE(fs::exists(directory.PathOf(5) + ".tmp"));
  EXPECT_TRUE(directory.HasSign(sign)) << "another run may be looking for it";
  std::ofstream(directory.PathOf(7) + ".tmp") << "half";
  ASSERT_TRUE(directory.PrepareShards(8).ok());
  directory.RemoveRemains();
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
