// Copies to a device, checked by the requests to its streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include "test/trainer/diary_device.h"
#include "trainer/data/batch_loader.h"

namespace muster::trainer {
namespace {

using testing::ElementsAre;

TEST(DeviceCopiesTest, AStreamOfTheirOwnBringsThemAndTheCurrentOneWaits) {
  const DeviceCopies copies(DiaryDevice());
  DeviceCopies::Copy copy = copies.Begin({at::arange(6), at::arange(2)});
  EXPECT_THAT(ReadDiary(), ElementsAre("copy on stream 7", "copy on stream 7", "mark stream 7"));
  // The thread's current stream is unchanged.
  const Batch batch = copies.Receive(std::move(copy));
  EXPECT_THAT(ReadDiary(),
              ElementsAre("stream 0 waits for the mark", "keep for stream 0", "keep for stream 0"));
  EXPECT_EQ(batch.inputs.device(), DiaryDevice());
  EXPECT_EQ(static_cast<std::int64_t*>(batch.inputs.data_ptr())[5], 5);
}

TEST(DeviceCopiesTest, OnTheProcessorABatchIsHandedThrough) {
  const DeviceCopies copies(at::kCPU);
  copies.EnterThread();
  const at::Tensor inputs = at::arange(6);
  DeviceCopies::Copy copy = copies.Begin({inputs, at::arange(2)});
  EXPECT_TRUE(copies.Receive(std::move(copy)).inputs.is_same(inputs));
  EXPECT_THAT(ReadDiary(), ElementsAre());
}

class Numbers : public Dataset {
 public:
  std::int64_t size() const override { return 8; }
  DataShape shape() const override { return {}; }
  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t, bool) const override {
    const at::Tensor numbers = at::tensor(indices);
    return {numbers, numbers};
  }
};

// Without a current device, a loader's threads would allocate memory on the first GPU.
TEST(DeviceCopiesTest, ALoaderFetchesAheadInThreadsThatKnowTheirDevice) {
  for (const int threads : {0, 1}) {
    ReadDiary();
    const GlobalOrder order(8, /*seed=*/1, /*epoch=*/0, /*shuffle=*/false);
    BatchLoader loader(std::make_shared<Numbers>(), order.From(0, 4, 0, 1),
                       {.threads = threads, .device = DiaryDevice()});
    for (int i = 0; i < 2; ++i) {
      const auto batch = loader.Next();
      ASSERT_TRUE(batch.ok()) << batch.status();
      EXPECT_EQ((*batch)->data.inputs.device(), DiaryDevice());
      EXPECT_EQ(static_cast<std::int64_t*>((*batch)->data.inputs.data_ptr())[3], 4 * i + 3);
    }
    std::vector<std::string> lines = ReadDiary();
    if (threads == 1) {
      ASSERT_FALSE(lines.empty());
      EXPECT_EQ(lines[0], "device 1");
    }
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "mark stream 7"), 2);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "stream 0 waits for the mark"), 2);
  }
}

}  // namespace
}  // namespace muster::trainer
