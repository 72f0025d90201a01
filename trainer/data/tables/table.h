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
  std::vector<std::int64_t> labels;  // rows; each an index into the classes

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

struct TableOptions {
  std::string path;
  std::string test_path;  // empty: a share of the rows
  double test_share = 0.1;
  std::uint64_t seed = 0;  // for the share
  std::string target;      // the name of the column that holds the classes
  DataFacts known;         // of the data that a model was trained with; empty: there is none
};

struct TableSplits {
  DataFacts facts;                   // the columns in the order of the numbers
  std::vector<std::string> classes;  // at least two; sorted
  TableRows train;                   // neither is empty
  TableRows test;
};

// Reads the CSV file at `path` (ReadCsv). Its first line names the columns. `target` is the one
// that holds the classes, as names or whole numbers; all others hold numbers. Classes are sorted as
// numbers if all are whole ones, else by their bytes.
//
// `test_path` is a file with the same columns and no other classes. If it is empty, `test_share` of
// the rows, at least one, is held out: which, depends on their number and on `seed` alone.
//
// Each column is standardized: less its mean, divided by its standard deviation, both taken over
// the rows to train on. A column whose numbers are all the same becomes 0. With `known`, both are
// those of the training, and columns, which must have the names that they had there, stand in any
// order.
//
// kInvalidArgument and one sentence, with file, line and column, when a file cannot be read, the
// names of the columns are missing or not unique, there is no such target, a row has another number
// of fields, a field is empty, not a number, or not finite, or there are fewer than two classes or
// rows.
absl::StatusOr<TableSplits> ReadTable(const TableOptions& options);

}  // namespace muster::trainer
