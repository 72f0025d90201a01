// A file that appears whole or not at all.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::trainer {

// Writes to a temporary file beside the wanted one and puts it in its place at the end, so that
// neither a crash of the process nor of the machine leaves a half-written file under the wanted
// name. Not thread-safe.
class DurableFile {
 public:
  // Starts a file that Commit() will put at `path`. kInvalidArgument when the temporary file,
  // `path`.tmp, cannot be made: then nothing is changed.
  static absl::StatusOr<std::unique_ptr<DurableFile>> Create(const std::string& path);

  // Removes the temporary file unless it was committed; what was at `path` is untouched.
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  // Adds `bytes`. After an error (kUnavailable) only the destructor may follow.
  absl::Status Append(std::string_view bytes);

  // Forces the data to the disk, replaces the file at `path` by it, and forces the directory to the
  // disk. To be called once, last.
  absl::Status Commit();

 private:
  DurableFile(std::string path, std::string temporary, int fd);
  absl::Status Failure(const char* attempt) const;  // with errno's text

  const std::string path_;
  const std::string temporary_;
  int fd_;  // -1 once it is closed
  bool committed_ = false;
};

}  // namespace muster::trainer
