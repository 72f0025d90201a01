// Reads CIFAR-10 in its binary form (https://www.cs.toronto.edu/~kriz/cifar.html): files of records
// of 3073 bytes, a label and then 32 x 32 pixels of red, of green and of blue.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "trainer/data/datasets/labelled_images.h"

namespace muster::trainer {

struct CifarImages {
  LabelledImages train;  // data_batch_1.bin to data_batch_5.bin, in that order
  LabelledImages test;   // test_batch.bin
};

// Reads the six files in `dir`, or in its folder cifar-10-batches-bin. kInvalidArgument and one
// sentence that names the file when one is missing, is not a whole number of records (at least
// one, at most 1 GiB), or has a label above 9.
absl::StatusOr<CifarImages> ReadCifar10(const std::string& dir);

}  // namespace muster::trainer
