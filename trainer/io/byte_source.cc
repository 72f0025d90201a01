#include "trainer/io/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failure.h"

namespace muster::trainer {

absl::StatusOr<std::unique_ptr<FileSource>> FileSource::Open(const std::string& path) {
  // Not blocking: the path may be a FIFO that nobody writes to, and is refused below.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return base::SystemFailure(absl::StatusCode::kInvalidArgument, "read", path);
  }
  struct stat stat = {};
  if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(absl::StrCat("read ", path, ": is not a regular file"));
  }
  return std::unique_ptr<FileSource>(
      new FileSource(path, fd, static_cast<std::uint64_t>(stat.st_size)));
}

FileSource::FileSource(std::string path, int fd, std::uint64_t size)
    : path_(std::move(path)), fd_(fd), size_(size) {}

FileSource::~FileSource() {
  close(fd_);
}

absl::Status FileSource::Read(std::uint64_t offset, void* out, std::size_t count) const {
  char* to = static_cast<char*>(out);
  while (count > 0) {
    const ssize_t got = pread(fd_, to, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return base::Failure(absl::StatusCode::kUnavailable, "read", path_,
                           got == 0 ? "became shorter meanwhile" : base::SystemCause());
    }
    to += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status MemorySource::Read(std::uint64_t offset, void* out, std::size_t count) const {
  if (count > 0) std::memcpy(out, bytes_.data() + offset, count);
  return absl::OkStatus();
}

}  // namespace muster::trainer
