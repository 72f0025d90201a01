#include "trainer/app/training/saving.h"

#include <filesystem>
#include <fstream>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
#include "trainer/io/checkpoint_file.h"
#include "trainer/io/torch_file.h"

namespace muster::trainer {
namespace {

class CheckpointWriterTest : public testing::Test {
 protected:
  static Value Snapshot(const at::Tensor& weight) {
    Dict dict;
    dict.Set("weight", weight);
    return dict;
  }
  std::string PathOf(std::int64_t step) const { return writer_.directory().PathOf(step); }

  const test::TempDir dir_;
  CheckpointWriter writer_{CheckpointDirectory::Open(dir_.Path("run"), 2).value(), "a job"};
};

TEST_F(CheckpointWriterTest, WritesWhatWasThereWhenItWasAsked) {
  const at::Tensor weight = at::full({1 << 20}, 1.0);
  for (const std::int64_t step : {1, 2, 3}) {
    writer_.Start(step, Snapshot(weight));
    weight.add_(1.0);
    writer_.Wait();
    EXPECT_FALSE(writer_.busy());
    ASSERT_TRUE(writer_.status().ok()) << writer_.status();
    const absl::StatusOr<Value> read = ReadTorchFile(PathOf(step));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(
        at::equal(*read->Find("weight")->tensor(), at::full({1 << 20}, static_cast<double>(step))));
  }
  EXPECT_EQ(writer_.directory().ReadLatest()->job, "a job");
}

TEST_F(CheckpointWriterTest, RanksWriteShardsOfWhatWasThereAndOneOfThemTheIndex) {
  const at::Tensor weight = at::full({1 << 20}, 1.0);
  CheckpointWriter other(CheckpointDirectory::Open(dir_.Path("run"), 2).value(), "a job");
  for (const std::int64_t step : {1, 2, 3}) {
    Dict snapshot;
    snapshot.Set("weight", weight);
    snapshot.Set("half", weight.narrow(0, 0, 1 << 19));
    ASSERT_TRUE(writer_.PrepareShards(step).ok());
    writer_.StartShard(step, snapshot, {.shard = 0, .shards = 2}, /*best=*/1);
    other.StartShard(step, snapshot, {.shard = 1, .shards = 2});
    weight.add_(1.0);
    writer_.Wait();
    other.Wait();
    const absl::StatusOr<FileFacts> first = writer_.shard();
    const absl::StatusOr<FileFacts> second = other.shard();
    ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
    EXPECT_GT(first->bytes, 4u << 20);
    EXPECT_LT(second->bytes, first->bytes);
    writer_.StartIndex({*first, *second});
    writer_.Wait();
    ASSERT_TRUE(writer_.status().ok()) << writer_.status();
    const absl::StatusOr<Value> read = ReadShards(writer_.directory().ShardsPathOf(step));
    ASSERT_TRUE(read.ok()) << read.status();
    for (const char* name : {"weight", "half"}) {
      const at::Tensor& tensor = *read->Find(name)->tensor();
      EXPECT_TRUE(at::equal(tensor, at::full(tensor.sizes(), static_cast<double>(step))));
    }
  }
  EXPECT_EQ(writer_.directory().Steps(), (std::vector<std::int64_t>{1, 2, 3})) << "1 is the best";
}

TEST_F(CheckpointWriterTest, AShardThatCannotBeWrittenIsSaidByItsRank) {
  ASSERT_TRUE(writer_.PrepareShards(1).ok());
  const std::string path =
      writer_.directory().ShardsPathOf(1) + "/shard-00001-of-00001.safetensors";
  std::filesystem::create_symlink("/dev/full", path + ".tmp");
  writer_.StartShard(1, Snapshot(at::full({10}, 1.0)), {});
  writer_.Wait();
  EXPECT_EQ(writer_.shard().status().message(), "write " + path + ": No space left on device");
  writer_.StartIndex({FileFacts()});
  writer_.Wait();
  EXPECT_EQ(writer_.directory().Steps(), std::vector<std::int64_t>());
}

TEST_F(CheckpointWriterTest, TheFirstFailureStays) {
  std::filesystem::create_symlink("/dev/full", PathOf(1) + ".tmp");
  writer_.Start(1, Snapshot(at::full({10}, 1.0)));
  EXPECT_TRUE(writer_.WaitFor(std::chrono::minutes(10)));
  const std::string sentence = "write " + PathOf(1) + ": No space left on device";
  EXPECT_EQ(writer_.status().message(), sentence);
  writer_.Start(2, Snapshot(at::full({10}, 1.0)));
  EXPECT_FALSE(writer_.busy());
  EXPECT_EQ(writer_.status().message(), sentence);
  EXPECT_FALSE(std::filesystem::exists(PathOf(2)));
}

}  // namespace
}  // namespace muster::trainer
