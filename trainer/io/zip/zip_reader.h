// Reads zip files as torch.save writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/functional/function_ref.h"
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

  // The same without keeping the bytes: `piece` is called with one after the other.
  absl::Status Scan(const Record& record, absl::FunctionRef<void(std::string_view)> piece) const;

 private:
  explicit ZipReader(const ByteSource& source) : source_(&source) {}
  // Reads `record` piece by piece to where `place` says, which is given how much was read before.
  absl::Status ReadPieces(const Record& record, absl::FunctionRef<char*(std::uint64_t)> place,
                          absl::FunctionRef<void(std::string_view)> piece) const;

  const ByteSource* source_;
  std::unordered_map<std::string, Record> records_;
};

}  // namespace muster::trainer
