// The images of MNIST and its kin: pairs of IDX files.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "trainer/data/datasets/labelled_images.h"

namespace muster::trainer {

// Reads "`split`-images-idx3-ubyte" and "`split`-labels-idx1-ubyte" in `dir`, plain or .gz; `split`
// is "train" or "t10k". kInvalidArgument and one sentence when one is missing, damaged, or does
// not hold grey images of 28 x 28 pixels and a label from 0 to 9 for each.
absl::StatusOr<LabelledImages> ReadIdxImages(const std::string& dir, const std::string& split);

}  // namespace muster::trainer
