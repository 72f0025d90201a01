#include "trainer/data/datasets.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "trainer/data/samples/image_folder.h"
#include "trainer/data/samples/image_samples.h"

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

FolderDataset::FolderDataset(std::vector<ImageFile> files, std::int64_t classes, std::int64_t side,
                             const Normalization& norm, const AugmentationOptions& augmentation)
    : files_(std::move(files)),
      classes_(classes),
      side_(side),
      table_(MakeNormalizedPixels(norm)),
      augmentation_(augmentation) {}

DataShape FolderDataset::shape() const {
  return {.kind = DataShape::Kind::kImages,
          .channels = kChannels,
          .height = side_,
          .width = side_,
          .classes = classes_};
}

Batch FolderDataset::Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
                            bool train) const {
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, kChannels, side_, side_}, at::kFloat),
              at::empty({count}, at::kLong)};
  auto* pixels = batch.inputs.data_ptr<float>();
  auto* labels = batch.targets.data_ptr<std::int64_t>();
  LabelledImages one{.channels = kChannels, .height = side_, .width = side_, .classes = classes_};
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= size()) {
      throw std::out_of_range("no image " + std::to_string(index) + " among " +
                              std::to_string(size()));
    }
    const ImageFile& file = files_[static_cast<std::size_t>(index)];
    const absl::StatusOr<RgbImage> image = ReadImage(file.path);
    if (!image.ok()) throw std::invalid_argument(std::string(image.status().message()));
    one.pixels = ResizedSquare(*image, side_);
    const ImageVariation variation =
        train ? VariationOf(augmentation_, epoch, index) : ImageVariation{};
    GatherImage(one, table_, /*index=*/0, variation, pixels);
    *labels++ = file.label;
    pixels += kChannels * side_ * side_;
  }
  return batch;
}

DataShape TableDataset::shape() const {
  return {.kind = DataShape::Kind::kTable,
          .channels = 1,
          .height = 1,
          .width = columns_,
          .classes = classes_};
}

Batch TableDataset::Gather(const std::vector<std::int64_t>& indices, std::int64_t /*epoch*/,
                           bool /*train*/) const {
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, 1, 1, columns_}, at::kFloat), at::empty({count}, at::kLong)};
  auto* values = batch.inputs.data_ptr<float>();
  auto* labels = batch.targets.data_ptr<std::int64_t>();
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= size()) {
      throw std::out_of_range("no row " + std::to_string(index) + " among " +
                              std::to_string(size()));
    }
    values = std::copy_n(rows_.values.data() + index * columns_, columns_, values);
    *labels++ = rows_.labels[static_cast<std::size_t>(index)];
  }
  return batch;
}

DataShape TextDataset::shape() const {
  return {.kind = DataShape::Kind::kText,
          .classes = windows_.vocabulary(),
          .context = windows_.context()};
}

Batch TextDataset::Gather(const std::vector<std::int64_t>& indices, std::int64_t epoch,
                          bool train) const {
  const std::int64_t context = windows_.context();
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch{at::empty({count, context}, at::kLong), at::empty({count, context}, at::kLong)};
  auto* inputs = batch.inputs.data_ptr<std::int64_t>();
  auto* targets = batch.targets.data_ptr<std::int64_t>();
  // The same for all windows of an epoch, so that they do not overlap.
  const std::int64_t shift = train ? windows_.ShiftOf(epoch) : 0;
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= size()) {
      throw std::out_of_range("no window " + std::to_string(index) + " among " +
                              std::to_string(size()));
    }
    windows_.Copy(index, shift, inputs, targets);
    inputs += context;
    targets += context;
  }
  return batch;
}

}  // namespace muster::trainer
