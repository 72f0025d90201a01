// The images of MNIST and similar data sets: pairs of IDX files.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "trainer/data/datasets/labelled_images.h"

namespace muster::trainer {

// Reads "`split`-images-idx3-ubyte" and "`split`-labels-idx1-ubyte" in `dir`, plain or .gz; `split`
// is "train" or "t10k". kInvalidArgument and one sentence when a file is missing or damaged, or
// when the two are not grey images of 28 x 28 pixels with a label from 0 to 9 each.
absl::StatusOr<LabelledImages> ReadIdxImages(const std::string& dir, const std::string& split);

}  // namespace muster::trainer
