#include "rendezvous/journal/state_directory.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::rendezvous {
namespace {

absl::Status Failure(const char* attempt, const std::string& path) {
  const char* cause = errno == ELOOP ? "it is a symbolic link" : std::strerror(errno);
  return absl::FailedPreconditionError(absl::StrCat(attempt, " ", path, ": ", cause));
}

absl::Status SyncDirectory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Failure("open directory", path);
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  errno = error;
  return error == 0 ? absl::OkStatus() : Failure("sync directory", path);
}

// The pid that the holder wrote; 0 when it has not come to that yet, or had no space for it.
int HolderOf(int lock) {
  char text[16] = {};
  const ssize_t size = ::pread(lock, text, sizeof text - 1, 0);
  int pid = 0;
  if (size <= 0 || !absl::SimpleAtoi(text, &pid)) return 0;
  return pid;
}

absl::Status IsTaken(const std::string& path, int lock) {
  const int pid = HolderOf(lock);
  const std::string holder =
      pid > 0 ? absl::StrCat("the process with pid ", pid) : std::string("another process");
  return absl::AlreadyExistsError(absl::StrCat("state directory ", path, " is in use by ", holder,
                                               ": stop that one, or name another directory"));
}

}  // namespace

absl::StatusOr<StateDirectory> StateDirectory::Take(const std::string& path) {
  const bool made = ::mkdir(path.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return Failure("make state directory", path);
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr) return Failure("find state directory", path);
  const std::string directory = resolved;
  if (made) {
    const std::string parent = directory.substr(0, directory.rfind('/') + 1);
    if (absl::Status synced = SyncDirectory(parent); !synced.ok()) return synced;
  }

  // Without O_NONBLOCK, opening a FIFO would wait for its reader.
  const std::string name = directory + "/lock";
  const int lock =
      ::open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  if (lock < 0) return Failure("open lock file", name);
  // Owns the descriptor from here on.
  StateDirectory taken(directory, lock);
  struct stat info;
  if (::fstat(lock, &info) != 0) return Failure("look at lock file", name);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("open lock file ", name, ": it is not a regular file"));
  }
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return IsTaken(directory, lock);
    return Failure("lock", name);
  }
  // The pid is for the sentence above alone: on a full disk it is left out, but never wrong.
  if (::ftruncate(lock, 0) != 0) return Failure("clear lock file", name);
  const std::string pid = absl::StrCat(::getpid(), "\n");
  if (::pwrite(lock, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    (void)!::ftruncate(lock, 0);
  }
  return taken;
}

StateDirectory::~StateDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

absl::Status StateDirectory::Sync() const {
  return SyncDirectory(path_);
}

}  // namespace muster::rendezvous
