#include "trainer/data/datasets/image_dataset.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace muster::trainer {

ImageDataset::ImageDataset(std::shared_ptr<const LabelledImages> images, const Normalization& norm,
                           const AugmentationOptions& augmentation)
    : images_(std::move(images)), table_(MakeNormalizedPixels(norm)), augmentation_(augmentation) {}

std::int64_t ImageDataset::size() const {
  return images_->count();
}

DataShape ImageDataset::shape() const {
  return {.kind = DataShape::Kind::kImages,
          .channels = images_->channels,
          .height = images_->height,
          .width = images_->width,
          .classes = images_->classes};
}

Batch ImageDataset::Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
                           bool train) const {
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, images_->channels, images_->height, images_->width}, at::kFloat),
              at::empty({count}, at::kLong)};
  auto* pixels = batch.inputs.data_ptr<float>();
  auto* labels = batch.targets.data_ptr<std::int64_t>();
  const std::int64_t image_size = images_->channels * images_->height * images_->width;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::int64_t index = indices[i];
    if (index < 0 || index >= size()) {
      throw std::out_of_range("no image " + std::to_string(index) + " among " +
                              std::to_string(size()));
    }
    if (i + 1 < indices.size() && indices[i + 1] >= 0 && indices[i + 1] < size()) {
      PrefetchImage(*images_, indices[i + 1]);
    }
    const ImageVariation variation =
        train ? VariationOf(augmentation_, epoch, index) : ImageVariation{};
    GatherImage(*images_, table_, index, variation, pixels);
    *labels++ = images_->labels[static_cast<std::size_t>(index)];
    pixels += image_size;
  }
  return batch;
}

}  // namespace muster::trainer
