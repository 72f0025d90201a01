// Opens a folder of images.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/data/data_facts.h"
#include "trainer/data/dataset.h"
#include "trainer/data/images/image_folder.h"
#include "trainer/data/loading/augmentation.h"

namespace muster::trainer {

struct ImageFolderOptions {
  ImageListOptions list;
  std::int64_t image_size = 64;
  Normalization normalization;       // of 3 channels; empty: ImageNet's
  AugmentationOptions augmentation;  // of training images
};

// Lists the files (ListImageFolder), all of which are read later, when a batch needs them. Images
// have 3 channels and are normalized, unless the options say otherwise, with ImageNet's mean
// (0.485, 0.456, 0.406) and standard deviation (0.229, 0.224, 0.225), whatever is in them: nothing
// has to be read beforehand, all ranks agree, and it is what published parameters expect.
// kInvalidArgument and one sentence as ListImageFolder, for an image size outside of 1 to 4096, and
// for a normalization of another number of channels.
absl::StatusOr<Splits> OpenImageFolder(const ImageFolderOptions& options);

// kInvalidArgument and one sentence when `known`, which a model was trained with, is not empty and
// not of `channels` channels.
absl::Status CheckChannels(const Normalization& known, std::int64_t channels);

}  // namespace muster::trainer
