// The same global batch and seed give the same loss curve for every world size.
//
// Runs muster-train with 1, 2 and 4 ranks and compares the loss of each step. With float32, only
// the first steps are compared, on real data: later, training amplifies rounding differences in the
// last bit, which depend on how the batch is divided. With float64 that takes far longer than these
// runs, so a whole training run is compared, including the ends of epochs, where the batch is
// smaller and cannot be divided evenly.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/temp_dir.h"
#include "test/trainer/program.h"

namespace muster::trainer {
namespace {

constexpr std::chrono::seconds kDeadline(120);

std::vector<double> ReadLosses(std::istream& lines) {
  std::vector<double> losses;
  std::int64_t step = 0;
  double loss = 0;
  while (lines >> step >> loss) {
    losses.push_back(loss);
    EXPECT_EQ(step, static_cast<std::int64_t>(losses.size()));
  }
  return losses;
}

// The losses of muster-train with `arguments`, on `world_size` ranks.
std::vector<double> Losses(std::vector<std::string> arguments, int world_size) {
  const std::string log = testing::TempDir() + "/loss-" + std::to_string(world_size);
  arguments.insert(arguments.begin(), MusterTrain());
  arguments.insert(arguments.end(), {"--no-eval", "--loss-log", log});
  RunRanks(arguments, world_size, kDeadline);
  std::ifstream file(log);
  return ReadLosses(file);
}

double LargestRelativeDifference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(a[i]));
  }
  return largest;
}

// CIFAR-10's files, with this many images of noise in each.
void WriteCifar(const test::TempDir& dir, int images_per_file) {
  std::mt19937 random(5);
  for (const char* const name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
                                 "data_batch_5", "test_batch"}) {
    std::string bytes;
    for (int image = 0; image < images_per_file; ++image) {
      bytes.push_back(static_cast<char>(random() % 10));
      for (int i = 0; i < 3 * 32 * 32; ++i) bytes.push_back(static_cast<char>(random() % 256));
    }
    dir.Write(std::string(name) + ".bin", bytes);
  }
}

TEST(LossCurveTest, DoesNotDependOnTheWorldSizeOnFashionMnist) {
  if (!HasFashionMnist()) GTEST_SKIP() << "needs Debian's dataset-fashion-mnist";
  const std::vector<std::string> arguments = {"--data", kFashionMnist, "--max-steps", "40"};
  const std::vector<double> alone = Losses(arguments, 1);
  ASSERT_EQ(alone.size(), 40u);
  EXPECT_LT(alone.back(), 0.8 * alone.front());
  for (const int world_size : {2, 4}) {
    EXPECT_LT(LargestRelativeDifference(alone, Losses(arguments, world_size)), 1e-4) << world_size;
  }
}

// 2050 images in batches of 60: an epoch ends with 10 images, which 3 and 4 ranks cannot share
// evenly.
TEST(LossCurveTest, DoesNotDependOnTheWorldSizeAcrossUnevenEpochs) {
  const std::vector<std::string> arguments = {"--dataset",    "generated", "--dtype",  "float64",
                                              "--model",      "mlp",       "--epochs", "2",
                                              "--batch-size", "60"};
  const std::vector<double> alone = Losses(arguments, 1);
  ASSERT_EQ(alone.size(), 70u);
  for (const int world_size : {2, 3, 4}) {
    EXPECT_LT(LargestRelativeDifference(alone, Losses(arguments, world_size)), 1e-7) << world_size;
  }
}

// 2050 images in batches of 1024: an epoch ends with 2 images, and two of 4 ranks have none of
// their own.
TEST(LossCurveTest, DoesNotDependOnTheWorldSizeWhenRanksRunOutOfImages) {
  const std::vector<std::string> arguments = {"--dataset",    "generated", "--dtype",  "float64",
                                              "--model",      "mlp",       "--epochs", "4",
                                              "--batch-size", "1024"};
  const std::vector<double> alone = Losses(arguments, 1);
  ASSERT_EQ(alone.size(), 12u);
  EXPECT_LT(LargestRelativeDifference(alone, Losses(arguments, 4)), 1e-7);
}

// With --sync-bn the loss of step 3 was 2.38805745, 2.33280906 and 2.19658938 on 1, 2 and 3 ranks:
// the images that pad a last batch entered mean and variance. 25 images in batches of 12 end with
// one, which one rank has.
TEST(LossCurveTest, DoesNotDependOnTheWorldSizeWithSyncedBatchNormalization) {
  const test::TempDir dir;
  WriteCifar(dir, /*images_per_file=*/5);
  const std::vector<std::string> arguments = {"--dataset", "cifar10",      "--data",   dir.path(),
                                              "--model",   "resnet18",     "--dtype",  "float64",
                                              "--lr",      "0.002",        "--epochs", "2",
                                              "--sync-bn", "--batch-size", "12"};
  const std::vector<double> alone = Losses(arguments, 1);
  ASSERT_EQ(alone.size(), 6u);
  for (const int world_size : {2, 3}) {
    EXPECT_LT(LargestRelativeDifference(alone, Losses(arguments, world_size)), 1e-7) << world_size;
  }
}

TEST(LossCurveTest, IsPythonsOwn) {
  if (!HasFashionMnist()) GTEST_SKIP() << "needs Debian's dataset-fashion-mnist";
  if (!PythonHasTorch()) GTEST_SKIP() << "needs Debian's python3-torch";
  Program python({"/usr/bin/python3", "test/trainer/testdata/reference.py", kFashionMnist, "30",
                  "64", "0.01", "0.9", "5"},
                 {});
  ASSERT_EQ(python.Wait(kDeadline), 0) << python.errors();
  std::istringstream lines(python.output());
  const std::vector<double> reference = ReadLosses(lines);
  ASSERT_EQ(reference.size(), 30u);
  const std::vector<double> ours =
      Losses({"--data", kFashionMnist, "--max-steps", "30", "--batch-size", "64", "--lr", "0.01",
              "--momentum", "0.9", "--seed", "5"},
             2);
  EXPECT_LT(LargestRelativeDifference(reference, ours), 1e-5);
}

}  // namespace
}  // namespace muster::trainer
