// Opens the data set that the user asks for.
#pragma once

#include "absl/status/statusor.h"

#include "trainer/data/data_options.h"
#include "trainer/data/dataset.h"

namespace muster::trainer {

// Opens or generates the data: both splits, of the same shape. Images are normalized with the mean
// and standard deviation of the training split. kInvalidArgument and one sentence when a file is
// missing, damaged, of another kind or too small, or when an option is out of range.
absl::StatusOr<Splits> OpenData(const DataOptions& options);

}  // namespace muster::trainer
