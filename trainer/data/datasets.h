// Labelled images in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/samples/image_folder.h"
#include "trainer/data/samples/image_samples.h"
#include "trainer/data/samples/sample_order.h"
#include "trainer/data/samples/table.h"
#include "trainer/data/samples/token_windows.h"

namespace muster::trainer {

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
