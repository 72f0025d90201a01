// Opens the data set that the user asks for.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "trainer/data/dataset.h"
#include "trainer/data/loading/augmentation.h"

namespace muster::trainer {

enum class DataKind {
  kIdx,            // MNIST's or Fashion-MNIST's four IDX files in the directory `path`
  kCifar10,        // CIFAR-10's binary files in the directory `path`
  kText,           // the file `path`, as bytes
  kGenerated,      // 2050 training and 500 test images, generated in memory
  kGeneratedText,  // 256 KiB of text, generated in memory
};

struct DataOptions {
  DataKind kind = DataKind::kIdx;
  std::string path = "/usr/share/datasets/fashion-mnist";
  AugmentationOptions augmentation;  // for training images

  // For text: the number of tokens in a sample, the share at the end of the text that is kept for
  // the test split, and the seed for each epoch's shift.
  std::int64_t context = 128;
  double test_share = 0.1;
  std::uint64_t seed = 0;
};

// Opens or generates the data: both splits, of the same shape. Images are normalized with the mean
// and standard deviation of the training split. kInvalidArgument and one sentence when a file is
// missing, damaged, of another kind or too small, or when an option is out of range.
absl::StatusOr<Splits> OpenData(const DataOptions& options);

}  // namespace muster::trainer
