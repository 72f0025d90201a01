// Opens a CSV file of numbers and classes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "trainer/data/dataset.h"

namespace muster::trainer {

struct CsvOptions {
  std::string path;
  std::string test_path;  // empty: a share of the rows
  double test_share = 0.1;
  std::uint64_t seed = 0;  // for the share
  std::string target;      // the name of the column that holds the classes
};

// Reads the whole table into memory (ReadTable). kInvalidArgument and one sentence as there.
absl::StatusOr<Splits> OpenCsv(const CsvOptions& options);

}  // namespace muster::trainer
