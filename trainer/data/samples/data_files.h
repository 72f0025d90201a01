// Access to a file's bytes without reading it first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "base/failure.h"

namespace muster::trainer {

// A file mapped into memory, read-only. Pages are read on first access, and ranks on one host share
// them. Unmapped on destruction. The file must not be truncated while mapped: accessing a missing
// page raises SIGBUS.
class MappedFile {
 public:
  // kInvalidArgument and one sentence when `path` cannot be opened or mapped, or is not a regular
  // file, or is empty.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::uint8_t* bytes() const { return bytes_; }
  std::int64_t size() const { return size_; }

 private:
  MappedFile(const std::uint8_t* bytes, std::int64_t size) : bytes_(bytes), size_(size) {}

  const std::uint8_t* bytes_;
  const std::int64_t size_;
};

// The error for a data file that cannot be read.

// "read /data/x.gz: truncated". kInvalidArgument.
inline absl::Status Unreadable(const std::string& path, absl::string_view why) {
  return base::Failure(absl::StatusCode::kInvalidArgument, "read", path, why);
}

// Finds the files that the user's paths name.

// Returns the files that `paths` name, in that order. A directory stands for the files directly in
// it whose names end with `ending`, sorted by name, without hidden and empty ones. Any other path
// stands for itself, whether or not it exists. kInvalidArgument and one sentence for a directory
// that cannot be read or has no such file.
absl::StatusOr<std::vector<std::string>> ListFiles(const std::vector<std::string>& paths,
                                                   const std::string& ending);

struct TokenFiles {
  std::vector<std::string> train;
  std::vector<std::string> test;  // may be empty
};

// The same for files of tokens, in nanoGPT's layout: a directory with a train.bin stands for only
// that file, other directories for their .bin files, and each val.bin next to a train.bin is the
// test split.
absl::StatusOr<TokenFiles> ListTokenFiles(const std::vector<std::string>& paths);

// Reads CSV with libcsv, the only library in Debian that follows RFC 4180 (quotes, and line breaks
// inside them), reports errors instead of guessing, and streams files of any width. (The other one,
// fast-cpp-csv-parser, fixes the number of columns at compile time, and does not support line
// breaks in quotes.)

// A record of a CSV file.
struct CsvRow {
  std::int64_t line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
};

// Calls `on_row` for each record of the file at `path`, in order: fields between commas, quoted
// according to RFC 4180; unquoted spaces around a field are ignored. Lines end with CR LF or LF;
// empty ones are skipped, as is a byte order mark at the beginning.
//
// kInvalidArgument and one sentence that names the file, and the line if known, if it cannot be
// read, quotes are wrong, it contains a zero byte and so is not text, or a record is longer than 16
// MiB (an unclosed quote). An error from `on_row` ends the reading and is returned.
absl::Status ReadCsv(const std::string& path,
                     const std::function<absl::Status(CsvRow row)>& on_row);

// "read iris.csv: line 7: why".
absl::Status BadCsvLine(const std::string& path, std::int64_t line, const std::string& why);

}  // namespace muster::trainer
