// Access to a file's bytes without reading it first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

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

}  // namespace muster::trainer
