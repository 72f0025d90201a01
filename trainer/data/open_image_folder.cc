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
  auto folder =
      ListImageFolder(options.directory, options.test_directory, options.test_share, options.seed);
  if (!folder.ok()) return folder.status();
  const auto classes = static_cast<std::int64_t>(folder->classes.size());
  const Normalization norm = {.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}};
  return Splits{std::make_shared<FolderDataset>(std::move(folder->train), classes,
                                                options.image_size, norm, options.augmentation),
                std::make_shared<FolderDataset>(std::move(folder->test), classes,
                                                options.image_size, norm, AugmentationOptions{})};
}

}  // namespace muster::trainer
