#include "trainer/data/datasets/folder_dataset.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "trainer/data/datasets/labelled_images.h"
#include "trainer/data/images/image_file.h"
#include "trainer/data/images/resize.h"

namespace muster::trainer {

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

}  // namespace muster::trainer
