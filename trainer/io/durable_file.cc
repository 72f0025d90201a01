#include "trainer/io/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failure.h"

namespace muster::trainer {

absl::StatusOr<std::unique_ptr<DurableFile>> DurableFile::Create(const std::string& path) {
  std::error_code ignored;
  // Opening the temporary file would work, and the rename at the very end would not.
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat("write ", path, ": is a directory"));
  }
  std::string temporary = path + ".tmp";
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    return base::SystemFailure(absl::StatusCode::kInvalidArgument, "write", path);
  }
  return std::unique_ptr<DurableFile>(new DurableFile(path, std::move(temporary), fd));
}

DurableFile::DurableFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

DurableFile::~DurableFile() {
  if (fd_ >= 0) close(fd_);
  if (!committed_) unlink(temporary_.c_str());
}

absl::Status DurableFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return Failure("write");
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status DurableFile::Commit() {
  if (fsync(fd_) != 0) return Failure("fsync");
  if (close(std::exchange(fd_, -1)) != 0) return Failure("close");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return Failure("rename to");
  committed_ = true;
  // The new name is data of the directory, which has to reach the disk too.
  const std::string directory = std::filesystem::path(path_).parent_path().string();
  const int dir_fd =
      open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir_fd < 0) return Failure("open the directory of");
  const bool synced = fsync(dir_fd) == 0;
  const absl::Status status = synced ? absl::OkStatus() : Failure("fsync the directory of");
  close(dir_fd);
  return status;
}

absl::Status DurableFile::Failure(const char* attempt) const {
  return base::SystemFailure(absl::StatusCode::kUnavailable, attempt, path_);
}

}  // namespace muster::trainer
