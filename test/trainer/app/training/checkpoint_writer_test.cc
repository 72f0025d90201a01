#include "trainer/app/training/checkpoint_writer.h"

#include <filesystem>
#include <fstream>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "test/support/temp_dir.h"
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
