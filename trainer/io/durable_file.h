// A file that appears complete or not at all.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "trainer/io/large_output.h"

namespace muster::trainer {

// Whose folder a file is written to.
enum class Folder {
  // A user's. The temporary file has no name, and is gone with the process, where the file system
  // can do that (O_TMPFILE); elsewhere it has one that no file had, `path`.1a2b3c4d.tmp.
  kOfUser,
  // A checkpoint directory. The temporary file is `path`.tmp, and replaces such a file: under that
  // name the directory finds what a run that was killed has left.
  kOfCheckpoints,
};

// Writes to a temporary file next to the target and renames it at the end, so that no crash of the
// process or the machine leaves a half-written file at the target path. Where the path is a
// symbolic link, the target is the file that it leads to, and the link stays. What is no file that
// could be replaced, a pipe, a terminal, /dev/null or /dev/stdout, is written straight: it gets
// each byte as it comes. Not thread-safe.
class DurableFile {
 public:
  // Starts a file that Commit() moves to `path`. kInvalidArgument, with nothing changed, when
  // `path` is a directory or the temporary file cannot be created. What is written straight is not
  // opened before the first byte, so that its reader sees nothing of a file that is abandoned.
  static absl::StatusOr<std::unique_ptr<DurableFile>> Create(const std::string& path,
                                                             Folder folder = Folder::kOfUser);

  // Removes the temporary file unless it was committed. Does not touch the file at `path`.
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  // Appends `bytes`. After an error (kUnavailable), only destroy the object. Opening a named pipe
  // waits for its reader.
  absl::Status Append(std::string_view bytes);

  // Syncs the data to disk, renames the file to `path`, and syncs the directory. Call it once,
  // last. On an error (kUnavailable) the file at `path` is untouched, unless only syncing the
  // directory failed: then the new file is there, but might not survive a crash of the machine.
  absl::Status Commit();

 private:
  DurableFile(std::string path, std::string target, std::string temporary, bool straight, int fd);
  absl::Status OpenStraight();
  bool GiveName();  // to the temporary file; false, with errno, when that fails
  absl::Status Failure(const char* attempt) const;  // with errno's text

  const std::string path_;               // as it was given, for messages
  const std::string target_;             // the file that is replaced
  std::string temporary_;                // empty while it has no name, and where there is none
  const bool straight_;                  // there is no temporary file
  int fd_;                               // -1 before it is opened, and once closed
  std::unique_ptr<LargeOutput> output_;  // of a file that is on a disk
  bool committed_ = false;
};

}  // namespace muster::trainer
