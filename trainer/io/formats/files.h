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

// `failure` of reading the file at `path`, with the path in its sentence. kUnavailable stays as it
// is, as it names the path already, and so does OK.
absl::Status ReadFailure(const std::string& path, const absl::Status& failure);

// What tells whether a file is still what was written.

struct FileFacts {
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;  // of all of them; the checksum of zip and gzip

  // Adds what follows in the file.
  void Add(std::string_view more);

  bool operator==(const FileFacts&) const = default;
};

// Writes large files without filling the kernel's page cache.

// Writes to an open file in large pieces that go past the page cache (O_DIRECT), where file and
// file system allow that. A checkpoint written so costs a fifth of the processor time, which a
// training beside it would miss, and does not push out of memory what others have read. A file of
// less than a piece is written as usual. Not thread-safe.
class LargeOutput {
 public:
  // Writes to `fd` from where it stands, which is 0. The caller closes it, and calls nothing else
  // of it until Finish().
  explicit LargeOutput(int fd) : fd_(fd) {}
  LargeOutput(const LargeOutput&) = delete;
  LargeOutput& operator=(const LargeOutput&) = delete;

  // False, with errno, when writing fails; only destroy the object then.
  bool Append(std::string_view bytes);
  // Writes what is left, after which the file is complete, though not synced. Call it once, last.
  bool Finish();

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };

  bool WritePiece();

  const int fd_;
  std::unique_ptr<std::byte, Free>
      piece_;  // aligned as O_DIRECT needs it; null before the first byte
  std::size_t filled_ = 0;
  bool began_ = false;   // a piece has been written
  bool direct_ = false;  // O_DIRECT is set
};

// A file that appears complete or not at all.

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

// Writes a DurableFile of `bytes`. Errors as its methods.
absl::Status WriteDurably(const std::string& path, std::string_view bytes, Folder folder);

// Whether two paths lead to one file.

// False where one of them leads to none yet. Pipes and devices are files, too, but writing to one
// that is read from (a terminal) destroys nothing, so they are none here.
bool IsSameFile(const std::string& one, const std::string& other);

// Whether what is written to `path` goes where stdout goes.
bool IsStdout(const std::string& path);

}  // namespace muster::trainer
