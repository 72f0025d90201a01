#include "trainer/data/open_image_folder.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "trainer/data/datasets/folder_dataset.h"

namespace muster::trainer {

absl::StatusOr<Splits> OpenImageFolder(const ImageFolderOptions& options) {
  constexpr std::int64_t kLargestSide = 4096;
  if (options.image_size < 1 || options.image_size > kLargestSide) {
    return absl::InvalidArgumentError(absl::StrCat("an image size of ", options.image_size,
                                                   " pixels: it must be from 1 to ", kLargestSide));
  }
  const absl::Status fits = CheckChannels(options.normalization, FolderDataset::kChannels);
  if (!fits.ok()) return fits;
  auto folder = ListImageFolder(options.list);
  if (!folder.ok()) return folder.status();
  const std::vector<std::string>& known = options.list.known_classes;
  const auto classes =
      static_cast<std::int64_t>(known.empty() ? folder->classes.size() : known.size());
  const Normalization norm =
      options.normalization.empty()
          ? Normalization{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}}
          : options.normalization;
  const auto images =
      [&](std::vector<ImageFile> files,
          const AugmentationOptions& augmentation) -> std::shared_ptr<const Dataset> {
    return std::make_shared<FolderDataset>(std::move(files), classes, options.image_size, norm,
                                           augmentation);
  };
  const bool divided = !folder->test.empty();
  Splits splits{.train = images(std::move(folder->train), options.augmentation),
                .facts = {.normalization = norm, .classes = std::move(folder->classes)}};
  splits.test = divided ? images(std::move(folder->test), AugmentationOptions{}) : splits.train;
  return splits;
}

absl::Status CheckChannels(const Normalization& known, std::int64_t channels) {
  const auto trained = static_cast<std::int64_t>(known.mean.size());
  if (known.empty() || trained == channels) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the model was trained on data with ", trained, trained == 1 ? " channel" : " channels",
      ", and these images have ", channels, ": give it data of the same kind"));
}

}  // namespace muster::trainer
