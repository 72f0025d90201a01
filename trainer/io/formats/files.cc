#include "trainer/io/formats/files.h"

#include <fcntl.h>
#include <libdeflate.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <new>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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

absl::Status ReadFailure(const std::string& path, const absl::Status& failure) {
  if (failure.ok() || absl::IsUnavailable(failure)) return failure;
  return absl::InvalidArgumentError(absl::StrCat("read ", path, ": ", failure.message()));
}

void FileFacts::Add(std::string_view more) {
  // To libdeflate a null pointer, which a tensor without elements has, means to begin anew.
  if (more.empty()) return;
  bytes += more.size();
  crc32 = libdeflate_crc32(crc32, more.data(), more.size());
}

namespace {

constexpr std::size_t kWritePiece = std::size_t{4} << 20;
// No file system asks for more than a page.
constexpr std::size_t kWriteAlignment = 4096;

bool SetDirect(int fd, bool on) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

}  // namespace

void LargeOutput::Free::operator()(std::byte* bytes) const {
  std::free(bytes);
}

bool LargeOutput::Append(std::string_view bytes) {
  if (piece_ == nullptr) {
    piece_.reset(static_cast<std::byte*>(std::aligned_alloc(kWriteAlignment, kWritePiece)));
    if (piece_ == nullptr) throw std::bad_alloc();
  }
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kWritePiece - filled_);
    std::memcpy(piece_.get() + filled_, bytes.data(), count);
    filled_ += count;
    bytes.remove_prefix(count);
    if (filled_ < kWritePiece) continue;
    // Some file systems refuse here (tmpfs), some only when they are written to.
    if (!began_) direct_ = SetDirect(fd_, true);
    if (!WritePiece()) return false;
  }
  return true;
}

// What is left need not fill a block of the device, and so goes through the cache.
bool LargeOutput::Finish() {
  if (direct_ && !SetDirect(fd_, false)) return false;
  direct_ = false;
  return WritePiece();
}

bool LargeOutput::WritePiece() {
  began_ = true;
  const std::byte* next = piece_.get();
  while (filled_ > 0) {
    const ssize_t written = write(fd_, next, filled_);
    if (written >= 0) {
      next += written;
      filled_ -= static_cast<std::size_t>(written);
    } else if (errno == EINVAL && direct_) {
      // Also after a piece of which only an odd part was written.
      if (!SetDirect(fd_, false)) return false;
      direct_ = false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;   // as Linux follows
constexpr int kMostNames = 100;  // that are tried

// What `path` leads to through symbolic links, whether there is such a file yet or not. Stops at an
// open file of a process (/dev/stdout leads to one), which has no path of its own.
fs::path Followed(fs::path path) {
  std::error_code error;
  for (int links = 0; links < kMostLinks; ++links) {
    const fs::path next = fs::read_symlink(path, error);
    const bool open_file =
        fs::weakly_canonical(path.parent_path(), error).string().starts_with("/proc/");
    if (next.empty() || open_file) break;
    path = path.parent_path() / next;
  }
  return path;
}

// Whether bytes for `target` go there at once, because a rename could not put them there.
bool HasToBeWrittenStraight(const fs::path& target) {
  std::error_code ignored;
  return fs::is_symlink(fs::symlink_status(target, ignored)) ||
         fs::is_other(fs::status(target, ignored));
}

// Calls `take` with names beside `target` until one was free: it takes that name and returns 0 or
// more, or fails with EEXIST. Returns what the last call did, and leaves its name in `name`.
int TakeFreeName(const std::string& target, std::string& name,
                 const std::function<int(const char*)>& take) {
  std::random_device random;
  int taken = -1;
  for (int i = 0; i < kMostNames; ++i) {
    name = absl::StrFormat("%s.%08x.tmp", target, random());
    taken = take(name.c_str());
    if (taken >= 0 || errno != EEXIST) break;
  }
  return taken;
}

std::string FolderOf(const std::string& target) {
  const fs::path folder = fs::path(target).parent_path();
  return folder.empty() ? "." : folder.string();
}

// Opens a file in the folder of `target` that has no name yet, so that nothing is left of it when
// the process is killed; -1 where the kernel or the file system cannot do that.
int OpenNameless(const std::string& target) {
  constexpr std::size_t kLongestName = 255 - sizeof(".1a2b3c4d.tmp");
  std::error_code ignored;
  const bool name_will_fit = fs::path(target).filename().native().size() <= kLongestName;
  if (!name_will_fit || !fs::exists("/proc/self/fd", ignored)) return -1;
  return open(FolderOf(target).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DurableFile>> DurableFile::Create(const std::string& path,
                                                                 Folder folder) {
  std::error_code ignored;
  // Opening the temporary file would work, and the rename at the very end would not.
  if (fs::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat("write ", path, ": is a directory"));
  }
  std::string target = Followed(path).string();
  std::string temporary;
  int fd = -1;
  bool writable = false;
  const bool straight = HasToBeWrittenStraight(target);
  if (straight) {
    writable = access(target.c_str(), W_OK) == 0;
  } else if (folder == Folder::kOfCheckpoints) {
    temporary = target + ".tmp";
    fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    writable = fd >= 0;
  } else {
    fd = OpenNameless(target);
    if (fd < 0) {
      fd = TakeFreeName(target, temporary, [](const char* name) {
        return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      });
    }
    writable = fd >= 0;
  }
  if (!writable) return base::SystemFailure(absl::StatusCode::kInvalidArgument, "write", path);
  return std::unique_ptr<DurableFile>(
      new DurableFile(path, std::move(target), std::move(temporary), straight, fd));
}

DurableFile::DurableFile(std::string path, std::string target, std::string temporary, bool straight,
                         int fd)
    : path_(std::move(path)),
      target_(std::move(target)),
      temporary_(std::move(temporary)),
      straight_(straight),
      fd_(fd) {
  struct stat status = {};
  if (fd_ >= 0 && fstat(fd_, &status) == 0 && S_ISREG(status.st_mode)) {
    output_ = std::make_unique<LargeOutput>(fd_);
  }
}

DurableFile::~DurableFile() {
  if (fd_ >= 0) close(fd_);
  if (!committed_ && !temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status DurableFile::OpenStraight() {
  if (!straight_ || fd_ >= 0) return absl::OkStatus();
  // Appending: behind /dev/stdout there may be a file with something in it.
  fd_ = open(target_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  return fd_ >= 0 ? absl::OkStatus() : Failure("open");
}

absl::Status DurableFile::Append(std::string_view bytes) {
  if (const absl::Status opened = OpenStraight(); !opened.ok()) return opened;
  if (output_) return output_->Append(bytes) ? absl::OkStatus() : Failure("write");
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
  if (const absl::Status opened = OpenStraight(); !opened.ok()) return opened;
  if (output_ && !output_->Finish()) return Failure("write");
  // Pipes and terminals are on no disk, and say so.
  if (fsync(fd_) != 0 && !(straight_ && (errno == EINVAL || errno == EROFS))) {
    return Failure("fsync");
  }
  if (!straight_ && temporary_.empty() && !GiveName()) return Failure("write");
  if (close(std::exchange(fd_, -1)) != 0) return Failure("close");
  if (straight_) return absl::OkStatus();
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) return Failure("rename to");
  committed_ = true;
  // The new name is data of the directory, which has to reach the disk too.
  const int dir_fd = open(FolderOf(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir_fd < 0) return Failure("open the directory of");
  const bool synced = fsync(dir_fd) == 0;
  const absl::Status status = synced ? absl::OkStatus() : Failure("fsync the directory of");
  close(dir_fd);
  return status;
}

bool DurableFile::GiveName() {
  const std::string open_file = absl::StrCat("/proc/self/fd/", fd_);
  std::string name;
  const int given = TakeFreeName(target_, name, [&](const char* free) {
    return linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, free, AT_SYMLINK_FOLLOW);
  });
  if (given < 0) return false;
  temporary_ = name;
  return true;
}

absl::Status DurableFile::Failure(const char* attempt) const {
  return base::SystemFailure(absl::StatusCode::kUnavailable, attempt, path_);
}

absl::Status WriteDurably(const std::string& path, std::string_view bytes, Folder folder) {
  const auto file = DurableFile::Create(path, folder);
  if (!file.ok()) return file.status();
  const absl::Status written = (*file)->Append(bytes);
  return written.ok() ? (*file)->Commit() : written;
}

namespace {

bool IsSame(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace

bool IsSameFile(const std::string& one, const std::string& other) {
  struct stat first = {};
  struct stat second = {};
  return stat(one.c_str(), &first) == 0 && stat(other.c_str(), &second) == 0 &&
         (S_ISREG(first.st_mode) || S_ISDIR(first.st_mode)) && IsSame(first, second);
}

bool IsStdout(const std::string& path) {
  struct stat file = {};
  struct stat standard = {};
  return stat(path.c_str(), &file) == 0 && fstat(STDOUT_FILENO, &standard) == 0 &&
         IsSame(file, standard);
}

}  // namespace muster::trainer
