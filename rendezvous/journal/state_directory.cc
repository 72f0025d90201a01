#include "rendezvous/journal/state_directory.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/failure.h"

namespace muster::rendezvous {
namespace {

absl::Status Failure(const char* attempt, const std::string& path) {
  return base::Failure(absl::StatusCode::kFailedPrecondition, attempt, path, base::OpenCause());
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

// Whether the process is dead, or dies before we would have told the user that it is not: who kills
// a daemon and starts the next in one breath must not be refused.
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
  // Not restarted, flock ends with EINTR.
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

// What a holder has left behind dies after it (rendezvous/keeper/keeper.h), and may have to wait
// for its disk.
bool Lock(int lock) {
  constexpr time_t kPatience = 10;
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK) return false;
  if (IsDying(HolderOf(lock)) && LockWithin(lock, kPatience)) return true;
  errno = EWOULDBLOCK;
  return false;
}

// Whoever may write there can put another journal in the place of ours, and so jobs and keys of his
// own. That a group may is somebody's decision, such as Kubernetes' for its volumes.
absl::Status CheckOwn(const std::string& directory) {
  constexpr char kUse[] = "use state directory";
  struct stat info = {};
  if (::lstat(directory.c_str(), &info) != 0) return Failure(kUse, directory);
  std::string why;
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    why = absl::StrCat("it belongs to the user with id ", info.st_uid,
                       ", who could change what is in it");
  } else if ((info.st_mode & S_IWOTH) != 0) {
    why = "every user could change what is in it";
  } else {
    return absl::OkStatus();
  }
  return base::Failure(
      absl::StatusCode::kFailedPrecondition, kUse, directory,
      absl::StrCat(why, "; name a directory that is not there yet, which is made for you alone"));
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
  } else if (absl::Status own = CheckOwn(directory); !own.ok()) {
    return own;
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
  if (!Lock(lock)) {
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
