#include "trainer/data/open_image_folder.h"

#include <memory>
#include <utility>

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
  auto folder =
      ListImageFolder(options.directory, options.test_directory, options.test_share, options.seed);
  if (!folder.ok()) return folder.status();
  const auto classes = static_cast<std::int64_t>(folder->classes.size());
  const Normalization norm =
      options.normalization.empty()
          ? Normalization{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}}
          : options.normalization;
  return Splits{std::make_shared<FolderDataset>(std::move(folder->train), classes,
                                                options.image_size, norm, options.augmentation),
                std::make_shared<FolderDataset>(std::move(folder->test), classes,
                                                options.image_size, norm, AugmentationOptions{}),
                {.normalization = norm}};
}

absl::Status CheckChannels(const Normalization& known, std::int64_t channels) {
  const auto trained = static_cast<std::int64_t>(known.mean.size());
  if (known.empty() || trained == channels) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the model was trained on data with ", trained, trained == 1 ? " channel" : " channels",
      ", and these images have ", channels, ": give it data of the same kind"));
}

}  // namespace muster::trainer
