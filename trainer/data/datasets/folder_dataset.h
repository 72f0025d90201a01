// Images in files of their own, decoded when they are needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/images/image_folder.h"
#include "trainer/data/loading/augmentation.h"
#include "trainer/data/loading/image_gather.h"

namespace muster::trainer {

// Reads, decodes and resizes (ResizedSquare) the files of a batch on the thread that gathers it, so
// a data set may be larger than memory, and more loader threads make it faster. From there on an
// image is treated as those of ImageDataset: varied, then normalized.
class FolderDataset : public Dataset {
 public:
  static constexpr std::int64_t kChannels = 3;

  // Images become `side` x `side` pixels, and `norm` has three channels.
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

}  // namespace muster::trainer
