// Tables of numbers, with a class for each row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::trainer {

// Rows of a table: their numbers, row by row, and their classes.
struct TableRows {
  std::vector<float> values;         // rows x columns
  std::vector<std::int64_t> labels;  // rows; each an index into the classes

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

struct TableSplits {
  std::vector<std::string> columns;  // of the numbers, in the order of the file
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
// the rows to train on. A column whose numbers are all the same becomes 0.
//
// kInvalidArgument and one sentence, with file, line and column, when a file cannot be read, the
// names of the columns are missing or not unique, there is no such target, a row has another number
// of fields, a field is empty, not a number, or not finite, or there are fewer than two classes or
// rows.
absl::StatusOr<TableSplits> ReadTable(const std::string& path, const std::string& test_path,
                                      const std::string& target, double test_share,
                                      std::uint64_t seed);

}  // namespace muster::trainer
