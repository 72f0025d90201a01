// A file that appears complete or not at all.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::trainer {

// Writes to a temporary file next to the target and renames it at the end, so that no crash of the
// process or the machine leaves a half-written file at the target path. Not thread-safe.
class DurableFile {
 public:
  // Starts a file that Commit() moves to `path`. kInvalidArgument, with nothing changed, when
  // `path` is a directory or the temporary file, `path`.tmp, cannot be created.
  static absl::StatusOr<std::unique_ptr<DurableFile>> Create(const std::string& path);

  // Removes the temporary file unless it was committed. Does not touch the file at `path`.
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  // Appends `bytes`. After an error (kUnavailable), only destroy the object.
  absl::Status Append(std::string_view bytes);

  // Syncs the data to disk, renames the file to `path`, and syncs the directory. Call it once,
  // last. On an error (kUnavailable) the file at `path` is untouched, unless only syncing the
  // directory failed: then the new file is there, but might not survive a crash of the machine.
  absl::Status Commit();

 private:
  DurableFile(std::string path, std::string temporary, int fd);
  absl::Status Failure(const char* attempt) const;  // with errno's text

  const std::string path_;
  const std::string temporary_;
  int fd_;  // -1 once closed
  bool committed_ = false;
};

}  // namespace muster::trainer
