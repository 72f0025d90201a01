// Tables of numbers, with a class for each row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/data/samples/data_options.h"

namespace muster::trainer {

// Rows of a table: their numbers, row by row, and their classes.
struct TableRows {
  std::vector<float> values;         // rows x columns
  std::vector<std::int64_t> labels;  // rows; each an index into the classes, or -1 for none

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

struct TableSplits {
  // With the columns in input order. Classes are sorted; or the known ones, followed by the unknown
  // ones.
  DataFacts facts;
  TableRows train;  // not empty
  TableRows test;   // empty if there is no test split: then all rows are in `train`
};

// Reads the CSV file that is the one of `options.paths` (ReadCsv). Its first line names the
// columns. `target` is the class column, with names or integers; all others contain numbers.
// Classes are sorted as numbers if all are integers, else by bytes.
//
// `test_path()` is a file with the same columns and no other classes. If it is empty,
// `test_share` of the rows, at least one, is held out; which ones depends only on their number and
// on `seed`.
// `undivided` tables, and those without a target, are not divided.
//
// Each column is standardized: less its mean, divided by its standard deviation, both over the
// training rows. A constant column becomes 0.
//
// With `known`, mean and deviation are the training's, columns must have the training's names but
// may be in any order, and classes keep their numbers, even if only some occur.
//
// kInvalidArgument and one sentence, with file, line and column, if a file cannot be read, column
// names are missing or not unique, the target does not exist, a row has another number of fields, a
// field is empty, not a number, or not finite, there are fewer than two classes or rows, or the
// table does not match `known`.
absl::StatusOr<TableSplits> ReadTable(const DataOptions& options);

}  // namespace muster::trainer
