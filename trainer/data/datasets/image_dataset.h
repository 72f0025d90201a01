// Labelled images in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/datasets/labelled_images.h"
#include "trainer/data/loading/augmentation.h"
#include "trainer/data/loading/image_gather.h"

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

}  // namespace muster::trainer
