// The data sets that come with muster-train: how they are opened, and how they keep their samples.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/data/dataset.h"
#include "trainer/data/samples/data_options.h"
#include "trainer/data/samples/image_folder.h"
#include "trainer/data/samples/image_samples.h"
#include "trainer/data/samples/sample_order.h"
#include "trainer/data/samples/table.h"
#include "trainer/data/samples/token_windows.h"

namespace muster::trainer {

// Each opens or generates both splits of its data set, of the same shape. Images are normalized
// with the mean and standard deviation of the training split, those of a folder with ImageNet's;
// data for an already trained model with `known`. kInvalidArgument and one sentence if a file is
// missing, damaged, of another kind or too small, or if an option is out of range.

// MNIST's or Fashion-MNIST's four IDX files in a directory.
absl::StatusOr<Splits> OpenIdx(const DataOptions& options);
// CIFAR-10's binary files in a directory.
absl::StatusOr<Splits> OpenCifar10(const DataOptions& options);
// JPEG and PNG files, a folder for each class (ListImageFolder), all of which are read later, when
// a batch needs them. Images have 3 channels and are normalized, unless the options say otherwise,
// with ImageNet's mean (0.485, 0.456, 0.406) and standard deviation (0.229, 0.224, 0.225), whatever
// they contain: nothing has to be read beforehand, all ranks agree, and published parameters expect
// it. kInvalidArgument as well for an image size outside of 1 to 4096, and for a normalization of
// another number of channels.
absl::StatusOr<Splits> OpenFolder(const DataOptions& options);
// A CSV file of numbers, with a column of classes, all of it in memory (ReadTable).
absl::StatusOr<Splits> OpenTable(const DataOptions& options);
// 2050 training and 500 test images, generated in memory.
absl::StatusOr<Splits> OpenGeneratedImages(const DataOptions& options);
// Text files, as bytes or encoded by a tokenizer.
absl::StatusOr<Splits> OpenText(const DataOptions& options);
// Files of tokens.
absl::StatusOr<Splits> OpenTokens(const DataOptions& options);
// 256 KiB of text, generated in memory.
absl::StatusOr<Splits> OpenGeneratedText(const DataOptions& options);

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

// Labelled images in memory.

// Keeps images as bytes, with a class each. A batch is gathered, augmented and normalized in a
// single pass over its pixels, which is many times faster than stacking samples one by one.
class ImageDataset : public Dataset {
 public:
  // `images` must not be empty, and its labels must be in [0, classes). `norm` has an entry for
  // each channel.
  ImageDataset(std::shared_ptr<const LabelledImages> images, const Normalization& norm,
               const AugmentationOptions& augmentation);

  std::int64_t size() const override;
  DataShape shape() const override;
  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
               bool train) const override;

 private:
  const std::shared_ptr<const LabelledImages> images_;
  const NormalizedPixels table_;
  const AugmentationOptions augmentation_;
};

// Images in separate files, decoded on demand.

// Reads, decodes and resizes (ResizedSquare) the files of a batch on the thread that gathers it, so
// a data set may be larger than memory, and more loader threads make it faster. After that an image
// is treated as in ImageDataset: augmented, then normalized.
class FolderDataset : public Dataset {
 public:
  static constexpr std::int64_t kChannels = 3;

  // Images are scaled to `side` x `side` pixels, and `norm` has three channels.
  FolderDataset(std::vector<ImageFile> files, std::int64_t classes, std::int64_t side,
                const Normalization& norm, const AugmentationOptions& augmentation);

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  DataShape shape() const override;
  // Throws std::invalid_argument with one sentence that names the file when an image is damaged.
  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
               bool train) const override;

 private:
  const std::vector<ImageFile> files_;
  const std::int64_t classes_;
  const std::int64_t side_;
  const NormalizedPixels table_;
  const AugmentationOptions augmentation_;
};

// Rows of a table, as tensors.

// Keeps a table in memory. A batch's inputs are B x 1 x 1 x columns, float32; no augmentation.
class TableDataset : public Dataset {
 public:
  // Each row of `rows` has `columns` numbers.
  TableDataset(TableRows rows, std::int64_t columns, std::int64_t classes)
      : rows_(std::move(rows)), columns_(columns), classes_(classes) {}

  std::int64_t size() const override { return rows_.count(); }
  DataShape shape() const override;
  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
               bool train) const override;

 private:
  const TableRows rows_;
  const std::int64_t columns_;
  const std::int64_t classes_;
};

// Windows of text, as tokens.

// Windows of tokens as tensors. A token outside of the vocabulary is reported when its window is
// gathered (TokenWindows).
class TextDataset : public Dataset {
 public:
  explicit TextDataset(TokenWindows windows) : windows_(std::move(windows)) {}

  std::int64_t size() const override { return windows_.size(); }
  DataShape shape() const override;
  Batch Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
               bool train) const override;

 private:
  const TokenWindows windows_;
};

}  // namespace muster::trainer
