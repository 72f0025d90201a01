// A worker's log file: opened carefully, and written to without ever failing the worker.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace muster::worker {

// Opens `path` for appending, close-on-exec, and creates it (mode 0600) and the directories above
// it (0700) where they are missing. Never blocks, and never follows a symbolic link at the end of
// the path, or one of another user on the way to it (base/safe_path.h). Anything but a regular file
// or a character device is refused, and so is a file with a second name: what is written to it
// would be in somebody's file that has nothing to do with logs. The error says which path and why.
absl::StatusOr<base::UniqueFd> OpenLogFile(const std::string& path);

// Appends to a log file. What the file does not take (disk full) is dropped and counted; later
// writes are tried again, as there may be room by then.
class LogWriter {
 public:
  static absl::StatusOr<LogWriter> Open(const std::string& path);

  // Writes everything in one write() if the disk allows it, so that lines from several writers to
  // one file remain whole. Returns what happened, the first time that bytes are dropped: "write
  // /logs/2/stderr.log: No space left on device"; else empty.
  std::string Write(std::string_view bytes);

  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  LogWriter(std::string path, base::UniqueFd file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  base::UniqueFd file_;
  std::uint64_t dropped_bytes_ = 0;
};

}  // namespace muster::worker
