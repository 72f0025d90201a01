// Bytes that are read from any place in them: a file, or memory in tests.
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

  // How many bytes there are.
  virtual std::uint64_t size() const = 0;

  // Fills `out` with the `count` bytes from `offset` on. The caller has checked that they lie
  // within size(). kUnavailable when that fails, also because the file became shorter.
  virtual absl::Status Read(std::uint64_t offset, void* out, std::size_t count) const = 0;
};

// A file that is open for reading; any number of threads may read.
class FileSource final : public ByteSource {
 public:
  // kInvalidArgument when there is no such file or it is no regular one.
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

// Bytes that the caller holds.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  absl::Status Read(std::uint64_t offset, void* out, std::size_t count) const override;

 private:
  const std::string_view bytes_;
};

}  // namespace muster::trainer
