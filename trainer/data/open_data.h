// Opens the data sets that come with muster-train.
#pragma once

#include "absl/status/statusor.h"

#include "trainer/data/data_options.h"
#include "trainer/data/dataset.h"

namespace muster::trainer {

// Each opens or generates both splits of its data set, of the same shape. Images are normalized
// with the mean and standard deviation of the training split, those of a folder with ImageNet's;
// what is to be shown to a model that is trained already, with what `known` says of it.
// kInvalidArgument and one sentence when a file is missing, damaged, of another kind or too small,
// or when an option is out of range.

// MNIST's or Fashion-MNIST's four IDX files in a directory.
absl::StatusOr<Splits> OpenIdx(const DataOptions& options);
// CIFAR-10's binary files in a directory.
absl::StatusOr<Splits> OpenCifar10(const DataOptions& options);
// JPEG and PNG files, a folder for each class (OpenImageFolder).
absl::StatusOr<Splits> OpenFolder(const DataOptions& options);
// A CSV file of numbers, with a column of classes (OpenCsv).
absl::StatusOr<Splits> OpenTable(const DataOptions& options);
// 2050 training and 500 test images, generated in memory.
absl::StatusOr<Splits> OpenGeneratedImages(const DataOptions& options);
// Text files, as bytes or encoded by a tokenizer.
absl::StatusOr<Splits> OpenText(const DataOptions& options);
// Files of tokens.
absl::StatusOr<Splits> OpenTokens(const DataOptions& options);
// 256 KiB of text, generated in memory.
absl::StatusOr<Splits> OpenGeneratedText(const DataOptions& options);

}  // namespace muster::trainer
