#include "rendezvous/journal/state_directory.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"
#include "base/safe_path.h"
#include "base/unique_fd.h"

namespace muster::rendezvous {
namespace {

constexpr char kUse[] = "use state directory";

absl::Status Failure(const char* attempt, const std::string& path) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, attempt, path, base::OpenCause());
}

absl::Status Failure(const char* attempt, const std::string& path, const absl::Status& cause) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, attempt, path, cause.message());
}

// Syncs the directory `name` in `directory`; `path` is for errors.
absl::Status SyncDirectory(int directory, const char* name, const std::string& path) {
  const base::UniqueFd fd(::openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Failure("open directory", path);
  return ::fsync(fd.get()) == 0 ? absl::OkStatus() : Failure("sync directory", path);
}

// The pid that the holder wrote; 0 if it has not written it yet, or had no space for it.
int HolderOf(int lock) {
  char text[16] = {};
  const ssize_t size = ::pread(lock, text, sizeof text - 1, 0);
  int pid = 0;
  if (size <= 0 || !absl::SimpleAtoi(text, &pid)) return 0;
  return pid;
}

// Whether the process is dead, or dies within moments: killing a daemon and at once starting the
// next must work.
bool IsDying(pid_t pid) {
  constexpr int kPatienceMs = 30;
  if (pid <= 0 || pid == ::getpid()) return false;
  pollfd ended = {static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)), POLLIN, 0};
  if (ended.fd < 0) return errno == ESRCH;
  const bool has_ended = ::poll(&ended, 1, kPatienceMs) > 0;
  ::close(ended.fd);
  return has_ended;
}

// Waits for the lock until an alarm ends the wait.
bool LockWithin(int lock, time_t seconds) {
  struct sigaction nothing = {}, before_action;
  // Without SA_RESTART, flock ends with EINTR.
  nothing.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &nothing, &before_action);
  const itimerval alarm = {{}, {seconds, 0}};
  const itimerval none = {};
  ::setitimer(ITIMER_REAL, &alarm, nullptr);
  const bool locked = ::flock(lock, LOCK_EX) == 0;
  ::setitimer(ITIMER_REAL, &none, nullptr);
  ::sigaction(SIGALRM, &before_action, nullptr);
  return locked;
}

// Processes that the holder leaves behind die after it (rendezvous/keeper/supervisor.h), and may
// have to wait for the disk.
bool Lock(int lock) {
  constexpr time_t kPatience = 10;
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK) return false;
  if (IsDying(HolderOf(lock)) && LockWithin(lock, kPatience)) return true;
  errno = EWOULDBLOCK;
  return false;
}

// A writer there can replace our journal, and so inject jobs and keys. A writable group is
// someone's deliberate choice, such as Kubernetes' for its volumes.
absl::Status CheckOwn(int fd, const std::string& directory) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return Failure(kUse, directory);
  if ((info.st_mode & S_IWOTH) == 0) return absl::OkStatus();
  return base::Failure(absl::StatusCode::kFailedPrecondition, kUse, directory,
                       "every user could change its contents; name a directory that does not exist "
                       "yet, and it is created for you alone");
}

// No one else may be able to change where a path leads, not even by renaming: all later accesses,
// SQLite's included, are by name.
constexpr base::PathOptions kOursAlone{.ours_alone = true};

struct Directory {
  base::UniqueFd fd;
  std::string path;  // absolute and without links
};

absl::StatusOr<Directory> Find(const std::string& path) {
  constexpr char kFind[] = "find state directory";
  // Checked separately, as the remedy is a different one.
  if (const auto itself = base::OpenDirectory(path); itself.ok()) {
    if (absl::Status own = CheckOwn(itself->get(), path); !own.ok()) return own;
  }
  absl::StatusOr<base::UniqueFd> named = base::OpenDirectory(path, kOursAlone);
  if (!named.ok()) return Failure(kUse, path, named.status());
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) return Failure(kFind, path);
  const absl::StatusOr<base::UniqueFd> again = base::OpenDirectory(real.get(), kOursAlone);
  if (!again.ok()) return Failure(kUse, path, again.status());
  struct stat first = {}, second = {};
  if (::fstat(named->get(), &first) != 0 || ::fstat(again->get(), &second) != 0) {
    return Failure(kFind, path);
  }
  if (first.st_dev != second.st_dev || first.st_ino != second.st_ino) {
    return Failure(kFind, path, absl::AbortedError("it was replaced just now"));
  }
  return Directory{*std::move(named), real.get()};
}

// Creates it if it is missing.
absl::Status Make(const std::string& path) {
  constexpr char kMake[] = "make state directory";
  const absl::StatusOr<base::Spot> spot = base::FindSpot(path, kOursAlone);
  if (absl::IsPermissionDenied(spot.status())) return Failure(kUse, path, spot.status());
  if (!spot.ok()) return Failure(kMake, path, spot.status());
  if (::mkdirat(spot->directory.get(), spot->name.c_str(), 0700) != 0) {
    return errno == EEXIST ? absl::OkStatus() : Failure(kMake, path);
  }
  return SyncDirectory(spot->directory.get(), ".", path);
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
  if (absl::Status made = Make(path); !made.ok()) return made;
  const absl::StatusOr<Directory> found = Find(path);
  if (!found.ok()) return found.status();
  const std::string& directory = found->path;

  // Without O_NONBLOCK, opening a FIFO would wait for a reader.
  const std::string name = directory + "/lock";
  const int lock = ::openat(found->fd.get(), "lock",
                            O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  if (lock < 0) return Failure("open lock file", name);
  // Owns the descriptor from here on.
  StateDirectory taken(directory, lock);
  struct stat info;
  if (::fstat(lock, &info) != 0) return Failure("look at lock file", name);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("open lock file ", name, ": it is not a regular file"));
  }
  if (!Lock(lock)) {
    if (errno == EWOULDBLOCK) return IsTaken(directory, lock);
    return Failure("lock", name);
  }
  // The pid only serves the sentence above: on a full disk it is missing, but never wrong.
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
  return SyncDirectory(AT_FDCWD, path_.c_str(), path_);
}

}  // namespace muster::rendezvous
