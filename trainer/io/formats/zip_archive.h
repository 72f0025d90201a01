// Reads zip files as torch.save writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/formats/files.h"

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

// Writes zip files as torch.save does.

// Records are stored uncompressed, with their data at multiples of 64 bytes, so that they can be
// mapped into memory. All sizes use the zip64 form, so that files above 4 GiB take the same code
// path as those in the tests. Format: PKWARE's APPNOTE.TXT 6.3.10.
//
// Why not LibTorch's caffe2::serialize::PyTorchStreamWriter (tried with 1.13.1): when a write
// fails, for example because the disk is full, its destructor throws, and the process ends without
// naming the file. It also takes twice as long (200 MB: 0.13 s of CPU, 0.07 s here), and the form
// of its files depends on their size.
class ZipWriter {
 public:
  // `file` must outlive this object. Its errors are passed on.
  explicit ZipWriter(DurableFile& file) : file_(file) {}

  // Adds a record. The caller must use each name only once.
  absl::Status Add(const std::string& name, std::string_view data);

  // Writes the directory of records. Call it once, last. The file is then complete but not yet
  // committed.
  absl::Status Finish();

 private:
  struct Record {
    std::string name;
    std::uint32_t crc;
    std::uint64_t size;
    std::uint64_t offset;  // of the record's header
  };

  absl::Status Write(std::string_view bytes);

  DurableFile& file_;
  std::vector<Record> records_;
  std::uint64_t position_ = 0;
};

}  // namespace muster::trainer
