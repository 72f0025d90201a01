// Random access to bytes: a file, or memory in tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::trainer {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // The number of bytes.
  virtual std::uint64_t size() const = 0;

  // Fills `out` with the `count` bytes at `offset`. The caller must check that they lie within
  // size(). kUnavailable when reading fails, or when the file has become shorter.
  virtual absl::Status Read(std::uint64_t offset, void* out, std::size_t count) const = 0;
};

// A file opened for reading. Any number of threads may read at once.
class FileSource final : public ByteSource {
 public:
  // kInvalidArgument when the file cannot be opened or is not a regular file.
  static absl::StatusOr<std::unique_ptr<FileSource>> Open(const std::string& path);
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  std::uint64_t size() const override { return size_; }
  absl::Status Read(std::uint64_t offset, void* out, std::size_t count) const override;

 private:
  FileSource(std::string path, int fd, std::uint64_t size);

  const std::string path_;
  const int fd_;
  const std::uint64_t size_;
};

// Bytes in memory, which the caller must keep alive.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  absl::Status Read(std::uint64_t offset, void* out, std::size_t count) const override;

 private:
  const std::string_view bytes_;
};

}  // namespace muster::trainer
