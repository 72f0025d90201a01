// Opens a CSV file of numbers and classes.
#pragma once

#include "absl/status/statusor.h"

#include "trainer/data/dataset.h"
#include "trainer/data/tables/table.h"

namespace muster::trainer {

// Reads the whole table into memory (ReadTable). kInvalidArgument and one sentence as there.
absl::StatusOr<Splits> OpenCsv(const TableOptions& options);

}  // namespace muster::trainer
