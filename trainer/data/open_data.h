// Opens the data sets that come with muster-train.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/data/dataset.h"
#include "trainer/data/samples/data_options.h"
#include "trainer/data/samples/image_folder.h"
#include "trainer/data/samples/sample_order.h"
#include "trainer/data/samples/table.h"

namespace muster::trainer {

// Each opens or generates both splits of its data set, of the same shape. Images are normalized
// with the mean and standard deviation of the training split, those of a folder with ImageNet's;
// data for an already trained model with `known`. kInvalidArgument and one sentence if a file is
// missing, damaged, of another kind or too small, or if an option is out of range.

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

// Opens a CSV file of numbers and classes.

// Reads the whole table into memory (ReadTable). kInvalidArgument and one sentence as there.
absl::StatusOr<Splits> OpenCsv(const TableOptions& options);

// Opens a folder of images.

struct ImageFolderOptions {
  ImageListOptions list;
  std::int64_t image_size = 64;
  Normalization normalization;       // of 3 channels; empty: ImageNet's
  AugmentationOptions augmentation;  // of training images
};

// Lists the files (ListImageFolder), all of which are read later, when a batch needs them. Images
// have 3 channels and are normalized, unless the options say otherwise, with ImageNet's mean
// (0.485, 0.456, 0.406) and standard deviation (0.229, 0.224, 0.225), whatever they contain:
// nothing has to be read beforehand, all ranks agree, and published parameters expect it.
// kInvalidArgument and one sentence as ListImageFolder, for an image size outside of 1 to 4096, and
// for a normalization of another number of channels.
absl::StatusOr<Splits> OpenImageFolder(const ImageFolderOptions& options);

// kInvalidArgument and one sentence if `known`, from the model's training, is not empty and does
// not have `channels` channels.
absl::Status CheckChannels(const Normalization& known, std::int64_t channels);

// A kind of data set, as an entry of the registry.

struct DataRecipe {
  std::string name;  // of --dataset: "idx"
  DataShape::Kind kind = DataShape::Kind::kImages;
  // Its title if it reads no --data: "generated images". Empty: its name and --data.
  std::string title;
  // The error if --data is required and not given; empty: it is not required.
  std::string needs_data;
  // Whether --test-data can name the test data.
  bool reads_test_data = false;
  // Opens both splits, of the same shape and of `kind`. kInvalidArgument and one sentence when a
  // file is missing, damaged, of another kind or too small, or when an option is out of range.
  // Called once, on the main thread of each rank.
  std::function<absl::StatusOr<Splits>(const DataOptions&)> open;
};

// Opens the recipe's data set. Returns the result of recipe.open; kInvalidArgument and one sentence
// if a split is missing or has no samples. Throws what recipe.open and the data set throw.
absl::StatusOr<Splits> OpenData(const DataRecipe& recipe, const DataOptions& options);

}  // namespace muster::trainer
