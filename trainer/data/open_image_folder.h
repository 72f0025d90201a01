// Opens a folder of images.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "trainer/data/dataset.h"
#include "trainer/data/loading/augmentation.h"

namespace muster::trainer {

struct ImageFolderOptions {
  std::string directory;
  std::string test_directory;  // empty: val/ or test/ in `directory`, else a share of the images
  double test_share = 0.1;
  std::uint64_t seed = 0;  // for the share
  std::int64_t image_size = 64;
  AugmentationOptions augmentation;  // of training images
};

// Lists the files (ListImageFolder), all of which are read later, when a batch needs them. Images
// have 3 channels and are normalized with ImageNet's mean (0.485, 0.456, 0.406) and standard
// deviation (0.229, 0.224, 0.225), whatever is in them: nothing has to be read beforehand, all
// ranks agree, and it is what published parameters expect. kInvalidArgument and one sentence as
// ListImageFolder, and for an image size outside of 1 to 4096.
absl::StatusOr<Splits> OpenImageFolder(const ImageFolderOptions& options);

}  // namespace muster::trainer
