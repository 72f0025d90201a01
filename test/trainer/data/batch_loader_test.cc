#include "trainer/data/batch_loader.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace muster::trainer {
namespace {

constexpr std::chrono::seconds kDeadline(30);

// Samples that are their own numbers. Sample 13 cannot be read. Can block its readers at a gate.
class FakeDataset : public Dataset {
 public:
  std::int64_t size() const override { return 1000; }
  DataShape shape() const override { return {}; }

  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
               bool train) const override {
    {
      std::unique_lock lock(mutex_);
      ++begun_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return open_; });
    }
    at::Tensor inputs = at::empty({static_cast<std::int64_t>(indices.size())}, at::kLong);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == 13) throw std::runtime_error("bad sector\nand a stack trace");
      if (indices[i] == 17) throw std::invalid_argument("read x: 17 is too much");
      inputs.data_ptr<std::int64_t>()[i] = indices[i];
    }
    return {inputs, at::full(inputs.sizes(), epoch * 2 + (train ? 1 : 0), at::kLong)};
  }

  void Close() { Set(false); }
  void Open() { Set(true); }

  int begun() const {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  bool WaitUntilBegun(int count) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return begun_ >= count; });
  }

 private:
  void Set(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int begun_ = 0;
  bool open_ = true;
};

BatchPlan Batches(std::int64_t count, std::int64_t first = 100) {
  return {
      .steps = count, .at = [first](std::int64_t i) {
        return RankBatch{.indices = {first + 2 * i, first + 2 * i + 1}, .own = i % 3, .global = 5};
      }};
}

// All batches of the loader, as their samples.
std::vector<std::vector<std::int64_t>> Drain(BatchLoader& loader) {
  std::vector<std::vector<std::int64_t>> all;
  for (;;) {
    const auto next = loader.Next();
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok() || !next->has_value()) return all;
    const at::Tensor& inputs = (*next)->data.inputs;
    all.emplace_back(inputs.data_ptr<std::int64_t>(),
                     inputs.data_ptr<std::int64_t>() + inputs.numel());
    EXPECT_EQ((*next)->plan.indices, all.back());
    EXPECT_EQ((*next)->plan.own, static_cast<std::int64_t>((all.size() - 1) % 3));
  }
}

TEST(BatchLoaderTest, OrderIsTheSameForAnyNumberOfThreads) {
  const auto dataset = std::make_shared<FakeDataset>();
  std::vector<std::vector<std::int64_t>> expected;
  for (std::int64_t i = 0; i < 200; ++i) expected.push_back(Batches(200).at(i).indices);
  for (const int threads : {0, 1, 2, 7}) {
    for (const int queue : {1, 2, 5, 1000}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, queue of " << queue);
      BatchLoader loader(dataset, Batches(200), {.threads = threads, .queue = queue});
      EXPECT_EQ(Drain(loader), expected);
      // And it stays at the end.
      EXPECT_EQ(loader.Next()->has_value(), false);
    }
  }
}

TEST(BatchLoaderTest, EpochAndPurposeReachTheDataSet) {
  const auto dataset = std::make_shared<FakeDataset>();
  for (const int threads : {0, 1}) {
    BatchLoader loader(dataset, Batches(1), {.epoch = 3, .train = false, .threads = threads});
    EXPECT_EQ((*loader.Next())->data.targets[0].item<std::int64_t>(), 6);
  }
}

TEST(BatchLoaderTest, GoesOnInTheMiddleOfAnEpoch) {
  const auto dataset = std::make_shared<FakeDataset>();
  const GlobalOrder order(1000, /*seed=*/1, /*epoch=*/0);
  const auto from = [&](std::int64_t position) {
    BatchPlan plan = order.From(position, 32, /*rank=*/1, /*world_size=*/2);
    plan.at = [at = plan.at](std::int64_t step) {
      RankBatch batch = at(step);
      std::replace(batch.indices.begin(), batch.indices.end(), 13, 14);
      return batch;
    };
    BatchLoader loader(dataset, plan, {.threads = 2});
    std::vector<std::vector<std::int64_t>> all;
    for (auto next = loader.Next(); next.ok() && next->has_value(); next = loader.Next()) {
      all.push_back((*next)->plan.indices);
    }
    return all;
  };
  auto whole = from(0);
  ASSERT_EQ(whole.size(), 32u);
  whole.erase(whole.begin(), whole.begin() + 11);
  EXPECT_EQ(from(11 * 32), whole);
}

TEST(BatchLoaderTest, BatchThatCannotBeReadIsReportedInItsPlace) {
  const auto dataset = std::make_shared<FakeDataset>();
  for (const int threads : {0, 1, 3}) {
    BatchLoader loader(dataset, Batches(6, /*first=*/8), {.epoch = 1, .threads = threads});
    EXPECT_EQ((*loader.Next())->plan.indices[0], 8);
    EXPECT_EQ((*loader.Next())->plan.indices[0], 10);
    const auto failed = loader.Next();
    EXPECT_EQ(failed.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(failed.status().message(), "gather batch 3 of 6 of epoch 2: bad sector");
    EXPECT_EQ((*loader.Next())->plan.indices[0], 14);
  }
}

// A batch with a token outside of the vocabulary gave "gather batch 1 of 1 ...", exit code 1,
// though the user has to change something.
TEST(BatchLoaderTest, SamplesThatAreNotWhatTheyMustBeAreTheUsersMistake) {
  const auto dataset = std::make_shared<FakeDataset>();
  BatchLoader loader(dataset, Batches(1, /*first=*/17), {.threads = 1});
  const auto failed = loader.Next();
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(failed.status().message(), "read x: 17 is too much");
}

// The plan of a whole epoch was computed before its first batch.
TEST(BatchLoaderTest, TheLengthOfAnEpochCostsNothing) {
  const auto dataset = std::make_shared<FakeDataset>();
  BatchPlan plan = Batches(std::int64_t{1} << 60);
  plan.at = [at = plan.at](std::int64_t step) { return at(step % 100); };
  BatchLoader loader(dataset, plan, {.threads = 1, .queue = 1});
  EXPECT_EQ((*loader.Next())->plan.indices[0], 100);
}

TEST(BatchLoaderTest, NoMoreIsPreparedThanTheQueueHolds) {
  const auto dataset = std::make_shared<FakeDataset>();
  BatchLoader loader(dataset, Batches(100), {.threads = 4, .queue = 3});
  ASSERT_TRUE(dataset->WaitUntilBegun(3));
  for (int taken = 1; taken <= 50; ++taken) {
    // At most the queue plus the batches taken have begun.
    EXPECT_LE(dataset->begun(), taken - 1 + 3);
    ASSERT_TRUE(loader.Next()->has_value());
    ASSERT_TRUE(dataset->WaitUntilBegun(taken + 3));
  }
}

TEST(BatchLoaderTest, ThreadsWorkAtOnce) {
  const auto dataset = std::make_shared<FakeDataset>();
  dataset->Close();
  BatchLoader loader(dataset, Batches(10), {.threads = 3, .queue = 8});
  // All three are in Gather at the same time, or this would never return.
  EXPECT_TRUE(dataset->WaitUntilBegun(3));
  dataset->Open();
  EXPECT_EQ(Drain(loader).size(), 10u);
}

TEST(BatchLoaderTest, StopsWhileThreadsWaitForRoom) {
  const auto dataset = std::make_shared<FakeDataset>();
  {
    BatchLoader loader(dataset, Batches(100), {.threads = 4, .queue = 2});
    ASSERT_TRUE(dataset->WaitUntilBegun(2));
  }
  EXPECT_EQ(dataset->begun(), 2);
}

TEST(BatchLoaderTest, StopsWhenTheBatchInHandIsDone) {
  const auto dataset = std::make_shared<FakeDataset>();
  dataset->Close();
  std::thread opener;
  {
    BatchLoader loader(dataset, Batches(3), {.threads = 2, .queue = 3});
    ASSERT_TRUE(dataset->WaitUntilBegun(2));
    opener = std::thread([&] { dataset->Open(); });
  }
  const int begun = dataset->begun();
  opener.join();
  // No thread is working any more.
  EXPECT_EQ(dataset->begun(), begun);
}

TEST(BatchLoaderTest, EmptyEpochEndsAtOnce) {
  const auto dataset = std::make_shared<FakeDataset>();
  for (const int threads : {0, 2}) {
    BatchLoader loader(dataset, {}, {.threads = threads});
    EXPECT_FALSE(loader.Next()->has_value());
  }
}

}  // namespace
}  // namespace muster::trainer
