// Tables of numbers, with a class for each row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "trainer/data/data_facts.h"

namespace muster::trainer {

// Rows of a table: their numbers, row by row, and their classes.
struct TableRows {
  std::vector<float> values;         // rows x columns
  std::vector<std::int64_t> labels;  // rows; each an index into the classes, or -1 for none

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

struct TableOptions {
  std::string path;
  std::string test_path;  // empty: a share of the rows
  double test_share = 0.1;
  std::uint64_t seed = 0;  // for the share
  std::string target;      // the name of the column that holds the classes
  // As in DataOptions.
  DataFacts known;
  bool labels_needed = true;
  bool undivided = false;
};

struct TableSplits {
  // With the columns in the order of the numbers. Classes are sorted; or those that are known, and
  // behind them those that are not.
  DataFacts facts;
  TableRows train;  // not empty
  TableRows test;   // empty if there is no such split: all rows are in `train`
};

// Reads the CSV file at `path` (ReadCsv). Its first line names the columns. `target` is the one
// that holds the classes, as names or whole numbers; all others hold numbers. Classes are sorted as
// numbers if all are whole ones, else by their bytes.
//
// `test_path` is a file with the same columns and no other classes. If it is empty, `test_share` of
// the rows, at least one, is held out: which, depends on their number and on `seed` alone.
// `undivided` tables, and those without a target, are not divided.
//
// Each column is standardized: less its mean, divided by its standard deviation, both taken over
// the rows to train on. A column whose numbers are all the same becomes 0.
//
// With `known`, mean and deviation are those of the training, columns, which must have the names
// that they had there, stand in any order, and classes have the numbers that they had there,
// however few of them there are.
//
// kInvalidArgument and one sentence, with file, line and column, when a file cannot be read, the
// names of the columns are missing or not unique, there is no such target, a row has another number
// of fields, a field is empty, not a number, or not finite, there are fewer than two classes or
// rows, or the table does not fit what is `known`.
absl::StatusOr<TableSplits> ReadTable(const TableOptions& options);

}  // namespace muster::trainer
