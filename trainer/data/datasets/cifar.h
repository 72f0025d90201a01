// Reads CIFAR-10 in its binary form (https://www.cs.toronto.edu/~kriz/cifar.html): files of
// 3073-byte records, each a label and then 32 x 32 red, green and blue values.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "trainer/data/datasets/labelled_images.h"

namespace muster::trainer {

struct CifarImages {
  LabelledImages train;  // data_batch_1.bin to data_batch_5.bin, in that order
  LabelledImages test;   // test_batch.bin
};

// Reads the six files in `dir`, or in its subdirectory cifar-10-batches-bin if there is one.
// kInvalidArgument and one sentence that names the file when it is missing or unreadable, is empty
// or above 1 GiB, is not a whole number of records, or has a label above 9.
absl::StatusOr<CifarImages> ReadCifar10(const std::string& dir);

}  // namespace muster::trainer
