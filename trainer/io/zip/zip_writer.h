// Writes zip files as torch.save does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

#include "trainer/io/durable_file.h"

namespace muster::trainer {

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
