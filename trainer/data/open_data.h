// From what the user asks for to data sets.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "trainer/data/dataset.h"
#include "trainer/data/loading/augmentation.h"

namespace muster::trainer {

enum class DataKind {
  kIdx,            // the four IDX files of MNIST or Fashion-MNIST in the directory `path`
  kCifar10,        // CIFAR-10's binary files in the directory `path`
  kText,           // the file `path`, as bytes
  kGenerated,      // 2050 and 500 images made in memory
  kGeneratedText,  // 256 KiB of text made in memory
};

struct DataOptions {
  DataKind kind = DataKind::kIdx;
  std::string path = "/usr/share/datasets/fashion-mnist";
  AugmentationOptions augmentation;  // of training images

  // Of text: tokens in a sample; the share of it, from its end, that is kept for the test split;
  // and the seed of each epoch's shift.
  std::int64_t context = 128;
  double test_share = 0.1;
  std::uint64_t seed = 0;
};

// Opens or makes the data: both splits, of the same shape. Images are normalized by the mean and
// deviation of the training split. kInvalidArgument and one sentence when something is missing,
// damaged, not what its name says, or too small.
absl::StatusOr<Splits> OpenData(const DataOptions& options);

}  // namespace muster::trainer
