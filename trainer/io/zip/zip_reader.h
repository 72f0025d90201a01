// Reads zip files as torch.save writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/byte_source.h"

namespace muster::trainer {

// Reads uncompressed records, with or without zip64. Does not trust the file: checks that each
// record lies within it and overlaps no other, so that all records together take no more memory
// than the file. Errors are one clause without the file's name: kUnavailable when reading fails,
// otherwise kInvalidArgument.
class ZipReader {
 public:
  struct Record {
    std::uint64_t offset = 0;  // of the data in the file
    std::uint64_t size = 0;    // in the file
    std::uint32_t crc = 0;
    bool plain = true;  // neither compressed nor encrypted; otherwise unreadable
  };

  // Finds the records. `source` must outlive this object.
  static absl::StatusOr<ZipReader> Open(const ByteSource& source);

  // By name.
  const std::unordered_map<std::string, Record>& records() const { return records_; }
  // The record `name`, or null.
  const Record* Find(const std::string& name) const;

  // Fills `out` with the `record.size` bytes of `record`, and verifies their checksum if there is
  // one.
  absl::Status Read(const Record& record, void* out) const;

 private:
  explicit ZipReader(const ByteSource& source) : source_(&source) {}

  const ByteSource* source_;
  std::unordered_map<std::string, Record> records_;
};

}  // namespace muster::trainer
