// Reads CSV by libcsv, the one library among Debian's that follows RFC 4180 (quotes, and line
// breaks inside them), reports mistakes instead of guessing, and reads a file of any width as a
// stream. (The other one, fast-cpp-csv-parser, has the number of columns fixed when it is compiled,
// and knows no line breaks in quotes.)
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster::trainer {

// A record of a CSV file.
struct CsvRow {
  std::int64_t line = 0;  // in which it begins, from 1
  std::vector<std::string> fields;
};

// Calls `on_row` for each record of the file at `path`, in order: fields between commas, quoted as
// RFC 4180 says; spaces around a field do not count unless they are quoted. Lines end with CR LF or
// LF; empty ones are left out, as is a byte order mark at the beginning.
//
// kInvalidArgument and one sentence that names the file, and the line if there is one, when it
// cannot be read, quotes are wrong, a zero byte shows that it is no text, or a record is longer
// than 16 MiB (a quote that is never closed). What `on_row` returns, if it is not OK, ends the
// reading and is returned.
absl::Status ReadCsv(const std::string& path,
                     const std::function<absl::Status(CsvRow row)>& on_row);

// "read iris.csv: line 7: why".
absl::Status BadCsvLine(const std::string& path, std::int64_t line, const std::string& why);

}  // namespace muster::trainer
