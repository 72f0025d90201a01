// Finds the records of a zip file as torch.save writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/byte_source.h"

namespace muster::trainer {

// Reads files whose records are stored as they are, with or without zip64. Trusts nothing in them:
// each record lies within the file and shares no byte with another, so that all of them together
// take no more memory than the file. Errors are one clause without the file's name: kUnavailable
// when reading fails, else kInvalidArgument.
class ZipReader {
 public:
  struct Record {
    std::uint64_t offset = 0;  // of its data
    std::uint64_t size = 0;    // in the file
    std::uint32_t crc = 0;
    bool plain = true;  // neither compressed nor encrypted; others cannot be read
  };

  // `source` outlives this object.
  static absl::StatusOr<ZipReader> Open(const ByteSource& source);

  // In no order.
  const std::unordered_map<std::string, Record>& records() const { return records_; }
  // Null when there is none.
  const Record* Find(const std::string& name) const;

  // Fills `out` with the `record.size` bytes of `record`, and checks their checksum, if there is
  // one.
  absl::Status Read(const Record& record, void* out) const;

 private:
  explicit ZipReader(const ByteSource& source) : source_(&source) {}

  const ByteSource* source_;
  std::unordered_map<std::string, Record> records_;
};

}  // namespace muster::trainer
